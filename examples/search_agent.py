"""A search agent: the game of 24 by Monte-Carlo tree search. Run: python examples/search_agent.py."""

import re
from fractions import Fraction
from functools import partial
from itertools import permutations

from rstar2_env import evaluate
from rstar2_env.search import TreeSearch


class Numbers:
    """World and guide: numbers with how each was made; an action puts two of them together."""

    def __init__(self, numbers, target):
        self.numbers, self.target = numbers, target

    def init_state(self):
        return tuple((Fraction(number), str(number)) for number in self.numbers)

    def get_actions(self, state):
        pairs = permutations(range(len(state)), 2)  # a+b and b+a are one, and nothing is divided by zero
        return [(a, b, op) for a, b in pairs for op in "+-*/" if (op in "-/" or a < b) and (op != "/" or state[b][0])]

    def step(self, state, action):
        a, b, op = action
        (left, how), (right, why) = state[a], state[b]
        value = {"+": left + right, "-": left - right, "*": left * right, "/": left / (right or 1)}[op]
        return *(one for place, one in enumerate(state) if place not in (a, b)), (value, f"({how} {op} {why})")

    def is_terminal(self, state):
        return len(state) == 1

    def fast_reward(self, state, action):  # how good an action looks before it is taken
        return self.reward(state, action, self.step(state, action))

    def reward(self, state, action, after):
        return float(self.is_terminal(after) and after[0][0] == self.target)


class Game24Search:
    """Answers with the best way that the search found."""

    def __init__(self, iterations: int = 200):
        self.search = TreeSearch(iterations=iterations, depth=4)

    def reset(self, observation, info, *, seed):
        target, numbers = re.search(r"Make (\d+) from the numbers ([\d, ]+\d)", observation).groups()
        self.world = Numbers(numbers.split(", "), int(target))

    def act(self, observation, info):
        return f"<answer>\\boxed{{{self.search(self.world, self.world).state[0][1]}}}</answer>"


if __name__ == "__main__":
    for iterations in (1, 200):
        found = evaluate("rstar2/Game24-v0", partial(Game24Search, iterations), episodes=8)
        print(iterations, "iterations:", sum(episode.correct for episode in found.kept), "of 8 solved")
