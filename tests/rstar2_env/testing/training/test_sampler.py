"""check_sampler passes a sound sampler and names the one clause that a broken one breaks."""

import math

import numpy as np
import pytest
from mutants import broken

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing import SAMPLER_CHECKS, check_sampler
from rstar2_env.trainers.samplers.base import Start


class Sound:
    """Draws problems with the weight that their outcomes gave them."""

    def __init__(self, ids=None, seed=0, *, pace=0.5):
        self._ids, self._seed, self._pace = ids, seed, pace
        self._weights = np.ones(len(ids or ()))
        self._drawn = 0

    def draw(self, n):
        return [self._next() for _ in range(n)]

    def _next(self):
        rng = np.random.default_rng([self._seed, self._drawn])
        self._drawn += 1
        options = {} if self._ids is None else {"problem_id": self._ids[self._choose(rng)]}
        return Start(int(rng.integers(2**62)), options)

    def _choose(self, rng):
        return int(rng.choice(len(self._ids), p=self._weights / self._weights.sum()))

    def observe(self, outcomes):
        for outcome in outcomes:
            if outcome.episodes and self._ids is not None:
                share = outcome.successes / outcome.episodes
                at = self._ids.index(outcome.start.problem_id)
                self._weights[at] += self._pace * (0.1 + share * (1 - share) - self._weights[at])

    def state_dict(self):
        return {"weights": self._weights.tolist(), "drawn": self._drawn}

    def load_state_dict(self, state):
        self._weights, self._drawn = np.array(state["weights"]), state["drawn"]


class OneMore(Sound):
    def draw(self, n):
        return super().draw(n) + ([self._next()] if n == 30 else [])


class NamesAStranger(Sound):
    def _next(self):
        start = super()._next()
        return start if self._ids is None else Start(start.seed, {"problem_id": "stranger"})

    def observe(self, outcomes):
        pass


class SeedsOfNumPy(Sound):
    def _next(self):
        start = super()._next()
        return Start(np.int64(start.seed), start.options)


class Unseeded(Sound):
    def __init__(self, ids=None, seed=0):
        super().__init__(ids, int(np.random.default_rng().integers(2**40)))

    def state_dict(self):
        return {**super().state_dict(), "seed": self._seed}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self._seed = state["seed"]


class NeverHeardOfItsSeed(Sound):
    def __init__(self, ids=None, seed=0):
        super().__init__(ids, 0)


class TheSameSeedAgain(Sound):
    def _next(self):
        start = super()._next()
        return Start(start.seed % 3 + 10 * self._seed, start.options)


class OneGeneratorForADraw(Sound):
    def draw(self, n):
        rng = np.random.default_rng([self._seed, self._drawn])
        self._drawn += 1
        starts = [Start(int(rng.integers(2**62))) for _ in range(n)]
        return starts if self._ids is None else [Start(one.seed, {"problem_id": self._ids[0]}) for one in starts]


class DividesByEpisodes(Sound):
    def observe(self, outcomes):
        for outcome in outcomes:
            outcome.successes / outcome.episodes


class KnowsItsLastDrawAlone(Sound):
    _last = ()

    def draw(self, n):
        drawn = super().draw(n)
        self._last = [one.seed for one in drawn]
        return drawn

    def observe(self, outcomes):
        for outcome in outcomes:
            self._last.index(outcome.start.seed)


class ForgetsWhatItLearned(Sound):
    def state_dict(self):
        return {"drawn": self._drawn}

    def load_state_dict(self, state):
        self._drawn = state["drawn"]


class KeepsAnArray(Sound):
    def state_dict(self):
        return {**super().state_dict(), "weights": self._weights}


class HoldsALambda(Sound):
    def __init__(self, ids=None, seed=0):
        super().__init__(ids, seed)
        self.key = lambda start: start.seed


class LosesItsPlaceOnTheWay(Sound):
    def __getstate__(self):
        return {**self.__dict__, "_drawn": 0}


class TellsInfinity(Sound):
    def figures(self):
        return {"hardest": math.inf}


class TellsAList(Sound):
    def figures(self):
        return [0.5]


class DrawsWhereItIsAsked(Sound):
    def figures(self):
        self._drawn += 1
        return {"drawn": float(self._drawn)}


MUTANTS = [
    (OneMore, "draws", "draw(30) returned 31 starts"),
    (NamesAStranger, "draws", "which is not among its problems"),
    (SeedsOfNumPy, "draws", "not an int"),
    (Unseeded, "seeds", "the same seed gives different draws"),
    (NeverHeardOfItsSeed, "seeds", "another seed gives the same draws"),
    (TheSameSeedAgain, "fresh_seeds", "two starts have the same seed"),
    (OneGeneratorForADraw, "parts_of_a_draw", "give different starts than draw(2)"),
    (DividesByEpisodes, "outcomes", "ZeroDivisionError"),
    (KnowsItsLastDrawAlone, "outcomes", "ValueError"),
    (ForgetsWhatItLearned, "checkpoints", "it draws different starts"),
    (KeepsAnArray, "checkpoints", "TypeError"),
    (TellsInfinity, "figures", "return finite numbers"),
    (TellsAList, "figures", "return numbers by name"),
    (DrawsWhereItIsAsked, "figures", "`figures`, it draws different starts"),
    (HoldsALambda, "pickling", "pickle"),
    (LosesItsPlaceOnTheWay, "pickling", "in the middle of a run"),
]
ALSO = {
    Unseeded: {"checkpoints", "parts_of_a_draw"},
    # Every run observes groups of which nothing counts.
    DividesByEpisodes: {"seeds", "fresh_seeds", "parts_of_a_draw", "checkpoints", "pickling"},
    KnowsItsLastDrawAlone: {"pickling"},
}


@pytest.mark.parametrize("problems", [tuple("abcdefghijkl"), None], ids=["problems", "seeds"])
def test_a_sound_sampler_passes_every_check(problems):
    assert check_sampler(Sound, problems=problems, pace=0.2) == list(SAMPLER_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_sampler, mutant)
    assert words in found[check]
    assert set(found) <= {check} | ALSO.get(mutant, set())


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(SAMPLER_CHECKS)


def test_a_sampler_that_is_made_already_is_refused():
    with pytest.raises(ConfigurationError, match="give it a name or a class"):
        check_sampler(Sound(["a"], 0))
    with pytest.raises(ConfigurationError, match="pase"):
        check_sampler(Sound, pase=1)
