"""check_aggregation passes a sound aggregation and names the one clause that a broken one breaks."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from mutants import broken

from rstar2_env.testing import AGGREGATION_CHECKS, check_aggregation


@dataclass
class Sound:
    """Every token weighs the same."""

    def __call__(self, lengths, groups, ranks):
        (total,) = ranks.sum(np.array([lengths.sum()], dtype=float))
        return np.where(lengths > 0, 1 / max(total, 1), 0.0)


class AList(Sound):
    def __call__(self, lengths, groups, ranks):
        return super().__call__(lengths, groups, ranks).tolist()


class WeighsEmptyRows(Sound):
    def __call__(self, lengths, groups, ranks):
        (total,) = ranks.sum(np.array([lengths.sum()], dtype=float))
        return np.full(len(lengths), 1 / total if total else 0.0)


class OfThisProcess(Sound):
    def __call__(self, lengths, groups, ranks):
        return np.where(lengths > 0, 1 / max(lengths.sum(), 1), 0.0)


class SumsWhereItHasRows(Sound):
    def __call__(self, lengths, groups, ranks):
        return super().__call__(lengths, groups, ranks) if len(lengths) else np.zeros(0)


class CountsGroupsByNumber(Sound):
    def __call__(self, lengths, groups, ranks):
        return super().__call__(lengths, groups, ranks) * np.where(groups == 7, 2.0, 1.0)


class ASum(Sound):
    def __call__(self, lengths, groups, ranks):
        return np.where(lengths > 0, 1.0, 0.0)


class DividesByNothing(Sound):
    def __call__(self, lengths, groups, ranks):
        (total,) = ranks.sum(np.array([lengths.sum()], dtype=float))
        return (lengths > 0) / total


class Overwrites(Sound):
    def __call__(self, lengths, groups, ranks):
        weights = super().__call__(lengths, groups, ranks)
        groups[:] = 0
        return weights


@dataclass
class HoldsALambda(Sound):
    scale: object = field(default_factory=lambda: lambda value: value)


MUTANTS = [
    (AList, "shape", "return a NumPy array of shape (rows,)"),
    (WeighsEmptyRows, "shape", "a row without a token has the weight"),
    (OfThisProcess, "processes", "on 2 processes the weights are"),
    (SumsWhereItHasRows, "processes", "all processes must make the same calls"),
    (CountsGroupsByNumber, "order", "depends on the ids of the groups"),
    (ASum, "copies", "the weights are not halved"),
    (DividesByNothing, "empty_batch", "invalid value"),
    (Overwrites, "purity", "changed its arguments"),
    (HoldsALambda, "pickling", "pickle"),
]
ALSO = {CountsGroupsByNumber: {"copies"}}


@pytest.mark.parametrize("aggregation", [Sound, Sound()], ids=["class", "object"])
def test_a_sound_aggregation_passes_every_check(aggregation):
    assert check_aggregation(aggregation) == list(AGGREGATION_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_aggregation, mutant)
    assert words in found[check]
    assert set(found) <= {check} | ALSO.get(mutant, set())


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(AGGREGATION_CHECKS)
