"""A stand-in for a language model that plays the game of 24 in words: what the agents' figures are measured with.

It writes whole solutions, single steps, outcomes, judgements and values, as the prompts of ``rstar2_env.agents`` ask
for them, from the text alone. It is no language model: ``skill`` says how often a step is one from which the target can
still be reached (another is drawn at random), ``noise`` how often it misjudges a state. Its mistakes about a state are
always the same, so that asking again does not help. Tokens are words, numbers and signs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np

State = tuple[tuple[Fraction, str], ...]
Move = tuple[int, str, int]

_QUESTION = re.compile(r"Make (\d+) from the numbers ([\d, ]+\d)")
_WORK = re.compile(r"^\d+\. (\S+) ([-+*/]) (\S+)", re.MULTILINE)
_BOXED = re.compile(r"\\boxed\{(.+)\}|^Answer: (.+)$", re.MULTILINE)

_PROGRAM = """```python
def search(left, target={target}):
    if len(left) == 1:
        return left[0][1] if abs(left[0][0] - target) < 1e-9 else None
    for a in left:
        for b in left:
            if a is not b:
                rest = [one for one in left if one is not a and one is not b]
                for sign in "+-*/":
                    if sign != "/" or b[0]:
                        value = a[0] + b[0] if sign == "+" else a[0] - b[0] if sign == "-" else (
                            a[0] * b[0] if sign == "*" else a[0] / b[0])
                        found = search(rest + [(value, "(" + a[1] + sign + b[1] + ")")])
                        if found:
                            return found

print("found", search([(number, str(number)) for number in {numbers}]))
```"""


class Game24Model:
    """Plays the game of 24 as a weak language model would.

    Args:
        skill: How often a step is drawn from those that can still reach the target.
        noise: How often a state is misjudged; a whole solution is a third as often.
        trust: How often it takes a step that is shown to it as helpful, where it can.
        programs: How often a program that it writes is right.
    """

    def __init__(self, skill: float = 0.35, noise: float = 0.1, trust: float = 0.3, programs: float = 0.6) -> None:
        self._skill, self._noise, self._trust, self._programs = skill, noise, trust, programs
        self._rng = np.random.default_rng(0)
        self.usage: dict[str, float] = {}

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start a conversation.

        Args:
            observation: Not used: all is in what is asked.
            info: Not used.
            seed: Seed of its choices.
        """
        self.usage = {"requests": 0.0, "completion_tokens": 0.0}
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Draw otherwise from here on."""
        self._rng = np.random.default_rng(seed)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The reply to what is asked."""
        text = self._reply(observation)
        self.usage["requests"] += 1
        self.usage["completion_tokens"] += tokens_of(text)
        return text

    def _reply(self, asked: str) -> str:
        target = int(_QUESTION.findall(asked)[-1][0])
        state = _question_state(asked)
        if "Work so far:" in asked:
            return self._at_work(asked, _after(state, asked), target)
        if "Proposed solution:" in asked or "Criteria:" in asked:
            found = _BOXED.search(asked)
            good = found is not None and self._judged(_value(found[1] or found[2], state) == target, asked, 3)
            if "Criteria:" in asked:
                return f"1. Yes\n2. Yes\n3. {'Yes' if good else 'No'}"
            if "RIGHT" in asked:
                return "RIGHT" if good else f"The result is not {target}."
            return "Yes" if good else "No"
        if "How should this be gone about next?" in asked:
            return "program" if "Result of program" not in asked else "aggregate"
        if "Write a Python program" in asked:
            right = self._rng.random() < self._programs
            return _PROGRAM.format(numbers=[int(value) for value, _ in state], target=target if right else target + 1)
        if "Answer the question from these results" in asked:
            found = re.search(r"^found (\S+)$", asked, re.MULTILINE)
            return f"Answer: {found[1] if found else self._solve(state, target)[1]}"
        thoughts, expression = self._solve(state, target)
        begun = asked.partition("Your thoughts so far:")[2]
        if known := re.search(rf"(\S+) makes {target}\b", begun):
            expression = known[1]
        return f"{thoughts}</think>\n<answer>\\boxed{{{expression}}}</answer>"

    def _at_work(self, asked: str, state: State, target: int) -> str:
        task = asked.rpartition("\n\n")[2]
        if task.startswith("Write the next step"):
            return self._step(state, target, asked)
        if task.startswith("The next step is:"):
            return _left(_taken(state, task.partition(":")[2]))
        if task.startswith("The proposed next step is:"):
            if found := _BOXED.search(task.replace("is: Answer", "is:\nAnswer")):
                return self._yes(_value((found[1] or found[2]), state) == target, task + str(state), 3)
            after = _taken(state, task.partition(":")[2])
            return self._yes(can(_values(after), target), str(_values(after)))
        if task.startswith("Is the last step right"):
            return "Yes"
        if task.startswith("Judge this work"):
            good = 3 if self._judged(can(_values(state), target), str(_values(state))) else 1
            few = max(1, 5 - len(state))
            return f"{good}{good}{good}{min(3, few)}2{min(3, few)}{good}"
        if task.startswith("Split what is left"):
            return f"Which two numbers make {target}?"
        if task.startswith("Two next steps"):
            first, second = re.findall(r"^[AB]: (.+)$", task, re.MULTILINE)
            good = [self._judged(can(_values(_taken(state, one)), target), one + str(state)) for one in (first, second)]
            return "B" if good[1] > good[0] else "A"
        if task.startswith("Rewrite the last step"):
            return self._step(_after(_question_state(asked), asked, but=1), target)
        if task.startswith("How promising"):
            if found := _BOXED.search(asked):
                good = self._judged(_value(found[1] or found[2], state) == target, asked, 3)
                return "10" if good else "0"
            good = self._judged(can(_values(state), target), str(_values(state)))
            return "8" if good else "1"
        thoughts, expression = self._solve(state, target)
        return f"{thoughts}\nAnswer: {expression}"

    def _step(self, state: State, target: int, asked: str = "") -> str:
        if len(state) == 1:
            return f"Answer: {state[0][1]}"
        for shown in re.findall(r"^- (\S+ [-+*/] \S+)", asked, re.MULTILINE):
            if len(_taken(state, shown)) < len(state) and self._rng.random() < self._trust:
                return str(shown)
        a, sign, b = self._move(state, target)
        return f"{state[a][0]} {sign} {state[b][0]}"

    def _move(self, state: State, target: int) -> Move:
        found = moves(state)
        good = [move for move in found if can(_values(_joined(state, *move)), target)]
        chosen = good if good and self._rng.random() < self._skill else found
        return chosen[int(self._rng.integers(len(chosen)))]

    def _solve(self, state: State, target: int) -> tuple[str, str]:
        """All steps that are left, and the expression that they come to."""
        lines = []
        while len(state) > 1:
            step = self._step(state, target)
            state = _taken(state, step)
            lines.append(step)
        value, expression = state[0]
        return "\n".join([*lines, f"{expression} makes {value}"]), expression

    def _judged(self, truth: bool, about: str, rarer: int = 1) -> bool:
        """The truth, but for a share of all states, which are always misjudged."""
        digest = hashlib.sha256(about.encode()).digest()
        return truth ^ (int.from_bytes(digest[:4], "big") / 2**32 < self._noise / rarer)

    def _yes(self, truth: bool, about: str, rarer: int = 1) -> str:
        return "Yes" if self._judged(truth, about, rarer) else "No"


def tokens_of(text: str) -> int:
    """Words, numbers and signs."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def moves(state: State) -> list[Move]:
    """All ways to put two numbers together; a+b and b+a are one, and nothing is divided by zero."""
    return [
        (a, sign, b)
        for a, b in permutations(range(len(state)), 2)
        for sign in "+-*/"
        if (sign in "-/" or a < b) and (sign != "/" or state[b][0])
    ]


def _joined(state: State, a: int, sign: str, b: int) -> State:
    (x, left), (y, right) = state[a], state[b]
    value = x + y if sign == "+" else x - y if sign == "-" else x * y if sign == "*" else x / y
    rest = tuple(one for place, one in enumerate(state) if place not in (a, b))
    return (*rest, (value, f"({left}{sign}{right})"))


def _taken(state: State, step: str) -> State:
    """The state after a step in words; the same, where it cannot be taken."""
    match = re.match(r"\s*(\S+) ([-+*/]) (\S+?),?(?:\s|$)", step)
    if match is None:
        return state
    for a, sign, b in moves(state):
        if sign == match[2] and (str(state[a][0]), str(state[b][0])) in (
            (match[1], match[3]),
            *([(match[3], match[1])] if sign in "+*" else []),
        ):
            return _joined(state, a, sign, b)
    return state


def _question_state(asked: str) -> State:
    return tuple((Fraction(number), number) for number in re.findall(r"\d+", _QUESTION.findall(asked)[-1][1]))


def _after(state: State, asked: str, but: int = 0) -> State:
    """The state after the steps of the work, but for some last ones."""
    work = _WORK.findall(asked.partition("Work so far:")[2])
    for a, sign, b in work[: len(work) - but]:
        state = _taken(state, f"{a} {sign} {b}")
    return state


def _left(state: State) -> str:
    return "left: " + ", ".join(str(value) for value, _ in state)


def _values(state: State) -> tuple[Fraction, ...]:
    return tuple(sorted(value for value, _ in state))


def _value(expression: str, state: State) -> Fraction | None:
    """What an expression of ours comes to."""
    from rstar2_env.worlds.expressions import read_expression

    try:
        return read_expression(expression).value()
    except ValueError:
        return None


@lru_cache(maxsize=1 << 18)
def can(values: tuple[Fraction, ...], target: int) -> bool:
    """Whether the target can be made of the values."""
    if len(values) == 1:
        return values[0] == target
    state = tuple((value, "") for value in values)
    return any(can(_values(_joined(state, *move)), target) for move in moves(state))


def solution_steps(numbers: list[int], target: int) -> list[str]:
    """The steps of a solution, as the model writes them; none where there is no solution."""
    state: State = tuple((Fraction(number), str(number)) for number in numbers)
    steps = []
    while len(state) > 1 and can(_values(state), target):
        move = next(one for one in moves(state) if can(_values(_joined(state, *one)), target))
        steps.append(f"{state[move[0]][0]} {move[1]} {state[move[2]][0]}")
        state = _joined(state, *move)
    return steps
