"""``progress`` trains as PAV says, in tables: the policy as its own prover scales the gradient."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from said import score

from rstar2_env.core.episode import Episode
from rstar2_env.core.turn import Turn
from rstar2_env.rewards import RewardContext
from rstar2_env.rewards.progress import Progress

POLICY = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
"""What each of three actions is drawn with, in every state of a tree of two turns."""
RIGHT = {(0, 0), (0, 1), (1, 2)}
EXACTLY = 16
"""Episodes of which every chance in the tree is a share."""


def chance(begun):
    """That an episode which begins so is right."""
    rest = list(itertools.product(range(3), repeat=2 - len(begun)))
    return sum(np.prod([POLICY[one] for one in end], initial=1) for end in rest if (*begun, *end) in RIGHT)


def share(n, chance):
    return [Episode(end="answered", correct=number < n * chance) for number in range(n)]


def gradient(alpha, best_of):
    """The policy gradient of every logit of the tree, over all episodes by their probability."""
    found = {}
    for actions in itertools.product(range(3), repeat=2):
        right = actions in RIGHT
        episode = Episode(correct=right, turns=2, steps=[Turn(0, 2), Turn(2, 4)])

        class Branches:
            async def branch(self, parent, token, n, begun=actions[:1]):
                return share(n, chance(begun))

        context = RewardContext(play=Branches(), group=share(EXACTLY, chance(())))
        progress = score(Progress(rollouts=EXACTLY, best_of=best_of), episode, context)
        drawn = float(np.prod([POLICY[one] for one in actions]))
        for turn, action in enumerate(actions):
            slope = np.eye(3)[action] - np.array(POLICY, float)
            weight = drawn * (right + alpha * progress[turn])
            found[actions[:turn]] = found.get(actions[:turn], 0) + weight * slope
    return np.concatenate([found[state] for state in sorted(found)])


def test_the_policy_as_its_own_prover_only_scales_the_gradient_of_the_outcome():
    outcome = gradient(0, 1)
    assert np.abs(outcome).max() > 0.01
    assert gradient(0.5, 1) == pytest.approx(1.5 * outcome, abs=1e-12)
    assert gradient(1.0, 1) == pytest.approx(2.0 * outcome, abs=1e-12)


def test_the_best_of_four_as_the_prover_turns_the_gradient():
    outcome, taught = gradient(0, 4), gradient(1.0, 4)
    cosine = outcome @ taught / np.linalg.norm(outcome) / np.linalg.norm(taught)
    assert 0.5 < cosine < 0.99


class Planted:
    """The paper's task: strings of 10 of 15 tokens, the last of which ends them, right if they have a subsequence.

    The policy is a table of logits by place and by how much of the subsequence there is. The prover draws the next
    token of the subsequence with a weight of ``gamma``, and every other with 1.
    """

    length, words, wanted = 10, 15, (3, 1, 4, 1, 5, 9, 2, 6)

    def __init__(self, gamma):
        found, rest = gamma / (gamma + self.words - 1), (self.words - 2) / (gamma + self.words - 1)
        self.chances = np.zeros((self.length + 1, len(self.wanted) + 1))
        self.chances[:, -1] = 1.0
        for at in reversed(range(self.length)):
            self.chances[at, :-1] = found * self.chances[at + 1, 1:] + rest * self.chances[at + 1, :-1]

    def train(self, alpha, steps, batch=64, rate=0.1):
        """Train by REINFORCE with Adam; return the share of right strings in the last step."""
        rng, part = np.random.default_rng(0), Progress(best_of=1)
        logits, mean, square = (np.zeros((self.length, len(self.wanted), self.words)) for _ in range(3))
        for step in range(1, steps + 1):
            slopes, played = np.zeros_like(logits), []
            policy = np.exp(logits - logits.max(-1, keepdims=True))
            policy /= policy.sum(-1, keepdims=True)
            for draws in rng.random((batch, self.length)):
                visited, chances, done = [], [self.chances[0, 0]], 0
                for at, draw in enumerate(draws):
                    token = min(int((policy[at, done].cumsum() < draw).sum()), self.words - 1)
                    visited.append((at, done, token))
                    done += token == self.wanted[done]
                    ended = token == self.words - 1
                    chances.append(0.0 if ended else self.chances[at + 1, done])
                    if ended or done == len(self.wanted):
                        break
                played.append((visited, part.along(chances), float(done == len(self.wanted))))
            right = np.mean([outcome for *_, outcome in played])
            for visited, progress, outcome in played:
                for (at, done, token), gained in zip(visited, progress, strict=True):
                    weight = (outcome - right + alpha * gained) / batch
                    slopes[at, done] -= weight * policy[at, done]
                    slopes[at, done, token] += weight
            mean, square = 0.9 * mean + 0.1 * slopes, 0.999 * square + 0.001 * slopes**2
            logits += rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        return right


@pytest.mark.slow
def test_a_prover_that_is_better_than_the_policy_finds_the_planted_subsequence_and_the_outcome_alone_never():
    task = Planted(gamma=10)
    assert task.chances[0, 0] == pytest.approx(0.01, abs=0.01)
    assert task.train(alpha=1.0, steps=150) > 0.95
    assert task.train(alpha=0.0, steps=150) == 0
