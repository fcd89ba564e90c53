"""A game becomes an environment in a few lines."""

import pickle
from dataclasses import dataclass

import gymnasium as gym
import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.game_env import Game, IllegalMoveError, knob, register
from rstar2_env.evaluation.run import evaluate
from rstar2_env.testing import check_text_env


@dataclass(slots=True)
class Guessing:
    """One match: find the number in as few tries as may be."""

    number: int
    tries: int = 0
    score: float | None = None

    @property
    def won(self):
        return self.score == 1.0

    def position(self):
        return f"You have guessed {self.tries} times."

    def read(self, move):
        if not (move.isascii() and move.isdigit() and len(move) <= 3):
            raise IllegalMoveError("unparsable", "That is no number.")
        return int(move)

    def truths(self, move):
        return (frozenset({"even" if self.number % 2 == 0 else "odd"}),)

    def play(self, move):
        self.tries += 1
        if move == self.number:
            self.score = 1.0 if self.tries == 1 else 0.5
        return "It is larger." if self.number > move else "It is smaller."

    def best(self):
        return str(self.number)


@dataclass(frozen=True)
class Guess(Game):
    """Guess a number.

    ## Difficulty
    ``largest=9`` (2 to 99).

    ## Random baseline
    0.1: any number.
    """

    name = "guess_of_this_test"
    random_baseline = 0.1
    rules = "Guess my number."
    turns = 8
    largest: int = knob(9, 2, 99)

    def start(self, seed):
        return Guessing(seed % (self.largest + 1))


@pytest.fixture(scope="module", autouse=True)
def env_id():
    register("Test/Guess-v0", Guess)
    yield "Test/Guess-v0"
    gym.registry.pop("Test/Guess-v0")


def test_it_keeps_the_contract(env_id):
    check_text_env(env_id)


def test_the_oracle_plays_it(env_id):
    assert evaluate(env_id, "oracle", episodes=10, workers=2).summary.reward.value == pytest.approx(1.0)


def test_its_class_stands_beside_the_game_documented_by_it_and_goes_through_pickle(env_id):
    env = gym.make(env_id, largest=20).unwrapped
    assert type(env).__name__ == "GuessEnv"
    for heading in ("Difficulty", "Random baseline", "Action space", "Reward", "Episode end", "Version history"):
        assert f"## {heading}" in type(env).__doc__
    assert pickle.loads(pickle.dumps(env)).reset(seed=3) == env.reset(seed=3)
    assert env.problem.id.startswith("guess_of_this_test:largest=20/train/")


def test_a_knob_out_of_range_is_refused(env_id):
    with pytest.raises(ConfigurationError, match="largest must be an integer from 2 to 99, not 1"):
        gym.make(env_id, largest=1)
