"""check_correction passes a sound correction and names the one clause that a broken one breaks."""

from dataclasses import dataclass, field

import pytest
from mutants import broken

from rstar2_env.testing import CORRECTION_CHECKS, check_correction


@dataclass
class Sound:
    """The ratio of a token, at most 2."""

    needs = frozenset({"old"})

    def __call__(self, tokens):
        return tokens.log_mismatch.clamp(-20, 20).exp().clamp(max=2.0)


class NeedsAList(Sound):
    needs = ("old",)


class NeedsWhatNobodyGives(Sound):
    needs = frozenset({"old", "critic"})


class Overflows(Sound):
    def __call__(self, tokens):
        return (tokens.log_mismatch * 20).exp()


class OneForARow(Sound):
    def __call__(self, tokens):
        return super().__call__(tokens).mean(-1)


class WithAGradient(Sound):
    def __call__(self, tokens):
        return (tokens.logp - tokens.logp.detach() + tokens.log_mismatch.clamp(-9, 9)).exp()


class NeverOne(Sound):
    def __call__(self, tokens):
        return super().__call__(tokens) * 0.5


class ReadsPadding(Sound):
    def __call__(self, tokens):
        return (tokens.old - tokens.sampled).mean(-1, keepdim=True).clamp(-9, 9).exp().expand(tokens.mask.shape)


class TrustsGoodEpisodes(Sound):
    def __call__(self, tokens):
        return super().__call__(tokens).where(tokens.advantage < 0, tokens.logp.detach() * 0 + 1.0)


class OverTheMicroBatch(Sound):
    def __call__(self, tokens):
        mean = tokens.log_mismatch.sum() / tokens.mask.sum()
        return mean.clamp(-9, 9).exp().expand(tokens.mask.shape)


@dataclass
class HoldsALambda(Sound):
    scale: object = field(default_factory=lambda: lambda value: value)


MUTANTS = [
    (NeedsAList, "declarations", "declare a frozenset"),
    (NeedsWhatNobodyGives, "declarations", "needs ['critic']"),
    (Overflows, "weights", "a weight is negative or not finite"),
    (OneForARow, "weights", "it returned (4,); return one weight per token, (4, 9)"),
    (WithAGradient, "weights", "its weights have a gradient"),
    (NeverOne, "agreement", "a weight is 0.5 instead of 1"),
    (ReadsPadding, "masking", "a weight depends on numbers outside the mask"),
    (TrustsGoodEpisodes, "advantages", "a weight depends on the advantages"),
    (OverTheMicroBatch, "rows_apart", "if row 0 is alone in its micro-batch, its weights are different"),
    (HoldsALambda, "pickling", "pickle"),
]
ALSO = {OneForARow: {"agreement", "masking", "advantages", "rows_apart", "pickling"}}


@pytest.mark.parametrize("correction", [Sound, Sound()], ids=["class", "object"])
def test_a_sound_correction_passes_every_check(correction):
    assert check_correction(correction) == list(CORRECTION_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_correction, mutant)
    assert words in found[check]
    assert set(found) <= {check} | ALSO.get(mutant, set())


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(CORRECTION_CHECKS)
