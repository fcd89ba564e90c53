"""check_selector passes a sound selector and names the one clause that a broken one breaks."""

import math
import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from mutants import broken

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.testing import SELECTOR_CHECKS, check_selector


@dataclass
class Sound:
    """Draws among the available episodes; tells why it left out the others."""

    reject_equal: bool = True

    def __call__(self, group, keep, rng):
        usable = [position for position, episode in enumerate(group) if episode.available]
        if self.reject_equal and len({group[position].reward for position in usable}) <= 1:
            return []
        return sorted(int(one) for one in rng.choice(usable, min(keep, len(usable)), replace=False)) if usable else []

    def settled(self, group, keep):
        return sum(episode is not None and episode.available for episode in group) >= keep

    def reasons(self, group, keep, chosen):
        return {position: "draw" for position in range(len(group)) if position not in chosen}


class InAnyOrder(Sound):
    def __call__(self, group, keep, rng):
        return super().__call__(group, keep, rng)[::-1]


class GivesNumPys(Sound):
    def __call__(self, group, keep, rng):
        return list(np.array(super().__call__(group, keep, rng), dtype=np.int64))


class OneTooMany(Sound):
    def __call__(self, group, keep, rng):
        return super().__call__(group, keep + 1, rng)


class TakesWhatFailed(Sound):
    def __call__(self, group, keep, rng):
        return list(range(len(group)))[:keep] if super().__call__(group, keep, rng) else []


class TakesNothing(Sound):
    def __call__(self, group, keep, rng):
        return []


class TakesNothingAndSaysSo(TakesNothing):
    reject_equal = True


class RejectsWrongOnesAlone(Sound):
    def __init__(self):
        self.reject_equal = False
        del self.reject_equal

    reject_equal = None

    def __call__(self, group, keep, rng):
        usable = [position for position, episode in enumerate(group) if episode.available]
        return [] if all(group[position].reward <= 0 for position in usable) else usable[:keep]


class SaysOtherThanItDoes(Sound):
    def __call__(self, group, keep, rng):
        return [position for position, episode in enumerate(group) if episode.available][:keep]


class DrawsUnseeded(Sound):
    def __call__(self, group, keep, rng):
        return super().__call__(group, keep, np.random.default_rng())


class DrawsFromTheGlobalGenerator(Sound):
    def __call__(self, group, keep, rng):
        random.random()
        return super().__call__(group, keep, rng)


class MarksTheEpisodes(Sound):
    def __call__(self, group, keep, rng):
        for episode in group:
            episode.answer = "seen"
        return super().__call__(group, keep, rng)


class ChangesItsMind(Sound):
    def settled(self, group, keep):
        return sum(episode is not None for episode in group) == 3


class SettlesAtOnce(Sound):
    def settled(self, group, keep):
        return True


class SaysACount(Sound):
    def settled(self, group, keep):
        return int(super().settled(group, keep))


class TellsOfTheChosen(Sound):
    def reasons(self, group, keep, chosen):
        return dict.fromkeys(chosen, "good")


@dataclass
class HoldsALambda(Sound):
    score: object = field(default_factory=lambda: lambda episode: episode.reward)


@dataclass
class Counts(Sound):
    """Alternates, and keeps the count."""

    calls: int = 0

    def __call__(self, group, keep, rng):
        self.calls += 1
        chosen = super().__call__(group, keep, rng)
        return chosen if self.calls % 5 else chosen[:1]

    def state_dict(self):
        return {"calls": self.calls}

    def load_state_dict(self, state):
        self.calls = state["calls"]


class ForgetsItsCount(Counts):
    def load_state_dict(self, state):
        pass


class WeighsByInfinity(Sound):
    def weighed(self, group, keep):
        return {position: {"penalty": math.inf} for position in range(len(group))}


class WeighsAStranger(Sound):
    def weighed(self, group, keep):
        return {len(group): {"penalty": 0.5}}


class MarksWhatItWeighs(Sound):
    def weighed(self, group, keep):
        for episode in group:
            episode.reward += 1
        return {}


MUTANTS = [
    (InAnyOrder, "positions", "which is not strictly ascending"),
    (GivesNumPys, "positions", "return a list of int"),
    (OneTooMany, "positions", "with keep=1, it chose too many episodes: 2"),
    (TakesWhatFailed, "available", "which ended with 'unavailable'"),
    (TakesNothing, "chooses", "it chose nothing"),
    (RejectsWrongOnesAlone, "equal_rewards", "accepts some groups whose rewards are equal and rejects others"),
    (SaysOtherThanItDoes, "equal_rewards", "with reject_equal=True"),
    (DrawsUnseeded, "purity", "the same generator gives a different choice"),
    (DrawsFromTheGlobalGenerator, "purity", "global state of random"),
    (MarksTheEpisodes, "purity", "it changed the episodes"),
    (ChangesItsMind, "settling", "is not settled after one more episode has ended"),
    (SettlesAtOnce, "settling", "before an episode has ended"),
    (SaysACount, "settling", "`settled` returned 1"),
    (TellsOfTheChosen, "reasons", "gave reasons for"),
    (WeighsByInfinity, "weighed", "return finite numbers by name"),
    (WeighsAStranger, "weighed", "positions out of range"),
    (MarksWhatItWeighs, "weighed", "`weighed` changed the episodes"),
    (HoldsALambda, "pickling", "pickle"),
    (ForgetsItsCount, "state", "loaded the state"),
]
ALONE = {"pickling": {"pickling"}, "purity": {"purity", "pickling"}, "state": {"state"}}


@pytest.mark.parametrize("selector", [Sound, Sound(), Sound(reject_equal=False), Counts], ids=lambda part: repr(part))
def test_a_sound_selector_passes_every_check(selector):
    assert check_selector(selector) == list(SELECTOR_CHECKS)


def test_a_function_is_a_selector():
    def first(group, keep, rng):
        return [position for position, episode in enumerate(group) if episode.available][:keep]

    assert check_selector(first, skip=["pickling"])


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_selector, mutant)
    assert words in found[check]
    assert set(found) <= ALONE.get(check, {check})


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(SELECTOR_CHECKS)


def test_names_and_options_are_those_of_a_recipe():
    assert check_selector("all:reject_equal=true")
    assert check_selector("roc", mode="rank")
    with pytest.raises(UnknownNameError, match="roc"):
        check_selector("rok")
    with pytest.raises(ConfigurationError, match="mode"):
        check_selector("roc:mode=best")
    with pytest.raises(ConfigurationError, match="apply only to a selector that is given by name or class"):
        check_selector(Sound(), reject_equal=False)
    with pytest.raises(UnknownNameError, match="settling"):
        check_selector("all", skip=["setling"])


def test_a_file_of_ones_own_is_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_selectors.py").write_text(
        "class Last:\n"
        "    '''The last ones.'''\n"
        "    def __call__(self, group, keep, rng):\n"
        "        return [position for position, episode in enumerate(group) if episode.available][-keep:]\n"
    )
    assert check_selector("./my_selectors.py:Last")
