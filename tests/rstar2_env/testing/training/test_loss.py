"""check_loss passes a sound term and names the one clause that a broken one breaks."""

from dataclasses import dataclass, field

import pytest
from mutants import broken

from rstar2_env.testing import LOSS_CHECKS, check_loss


@dataclass
class Sound:
    """The surrogate without a clip."""

    needs = frozenset({"old"})
    policy_gradient = True

    def __call__(self, tokens):
        return -tokens.log_ratio.clamp(-20, 20).exp() * tokens.advantage

    def figures(self, tokens):
        return {"ratio": (tokens.log_ratio.detach().exp().masked_fill(~tokens.mask, 0.0).sum(), tokens.mask.sum())}


@dataclass
class Sharpens:
    """No policy gradient: a bonus on the entropy that grows from step to step."""

    coef: float = 0.1
    needs = frozenset({"entropy"})
    policy_gradient = False

    def __call__(self, tokens):
        return self.coef * tokens.entropy

    def observe(self, figures):
        self.coef *= 1.5

    def state_dict(self):
        return {"coef": self.coef}

    def load_state_dict(self, state):
        self.coef = state["coef"]


class SaysNotWhatItIs(Sound):
    policy_gradient = None


class NeedsWhatNobodyGives(Sound):
    needs = frozenset({"old", "critic"})


class OneForARow(Sound):
    def __call__(self, tokens):
        return super().__call__(tokens).masked_fill(~tokens.mask, 0.0).sum(-1)


class Overflows(Sound):
    def __call__(self, tokens):
        return -(25 * tokens.log_ratio).exp() * tokens.advantage


class ReadsOldUndeclared(Sound):
    needs = frozenset()

    def figures(self, tokens):
        return {}


class ReadsAReferenceUndeclared(Sound):
    def __call__(self, tokens):
        return super().__call__(tokens) + 0 * tokens.reference


class ReadsPadding(Sound):
    """Rows are normalised by the number of columns, and padding gets a gradient."""

    def __call__(self, tokens):
        ratio = (tokens.logp - tokens.old).clamp(-20, 20).mean(-1, keepdim=True).exp()
        return -(ratio * tokens.advantage).expand(tokens.mask.shape)


class OverTheMicroBatch(Sound):
    def __call__(self, tokens):
        return super().__call__(tokens) / tokens.mask.sum()


class Detached(Sound):
    def __call__(self, tokens):
        return super().__call__(tokens).detach()


class UpsideDown(Sound):
    def __call__(self, tokens):
        return -super().__call__(tokens)


class TrainsWithoutAnAdvantage(Sound):
    def __call__(self, tokens):
        return super().__call__(tokens) - 0.01 * tokens.logp


class FiguresWithAGradient(Sound):
    def figures(self, tokens):
        return {"ratio": (tokens.log_ratio.exp().masked_fill(~tokens.mask, 0.0).sum(), tokens.mask.sum())}


class FiguresOfPadding(Sound):
    def figures(self, tokens):
        return {"advantage": (tokens.advantage.sum(), tokens.mask.sum())}


class ForgetsItsState(Sharpens):
    def load_state_dict(self, state):
        pass


@dataclass
class HoldsALambda(Sound):
    scale: object = field(default_factory=lambda: lambda value: value)


class ComparesWithItsOwnRows(Sound):
    """Takes the mean of this process for that of the batch."""

    def prepare(self, batch, ranks, rng):
        return {"above": batch.logp - batch.logp.sum() / max(len(batch.logp), 1)}

    def __call__(self, tokens):
        return super().__call__(tokens) * tokens.column("above").clamp(-1, 1).exp()


MUTANTS = [
    (SaysNotWhatItIs, "declarations", "policy_gradient is None"),
    (NeedsWhatNobodyGives, "declarations", "needs ['critic']"),
    (OneForARow, "shape", "it returned (4,); return one loss per token, (4, 9)"),
    (Overflows, "shape", "is not finite; clamp"),
    (ReadsOldUndeclared, "needs_suffice", "it reads tokens.old"),
    (ReadsAReferenceUndeclared, "needs_suffice", "given only what it declares (old), the term raised TypeError"),
    (ReadsPadding, "masking", "a token outside the mask has a gradient"),
    (OverTheMicroBatch, "rows_apart", "if row 0 is alone in its micro-batch, its loss is different"),
    (Detached, "trains", "its loss has no gradient"),
    (UpsideDown, "trains", "a higher log-prob does not lower the loss"),
    (TrainsWithoutAnAdvantage, "trains", "where the advantage is zero"),
    (FiguresWithAGradient, "figures", "has a gradient; detach it"),
    (FiguresOfPadding, "figures", "the metric 'advantage' depends on numbers"),
    (ComparesWithItsOwnRows, "preparing", "processes"),
    (ForgetsItsState, "state", "a different loss"),
    (HoldsALambda, "pickling", "pickle"),
]
EVERY = set(LOSS_CHECKS)
ALSO = {
    # What cannot be called at all breaks every clause that calls it.
    OneForARow: EVERY,
    ReadsAReferenceUndeclared: EVERY,
    ReadsOldUndeclared: EVERY - {"declarations"},
    SaysNotWhatItIs: {"trains"},
    ReadsPadding: {"rows_apart"},
    Detached: {"masking"},
}


@pytest.mark.parametrize("term", [Sound, Sound(), Sharpens], ids=["class", "object", "no policy gradient"])
def test_a_sound_term_passes_every_check(term):
    assert check_loss(term) == list(LOSS_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_loss, mutant)
    assert words in found[check]
    assert set(found) <= {check} | ALSO.get(mutant, set())


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(LOSS_CHECKS)


def test_a_term_that_reads_a_column_says_which():
    class ByColumn(Sound):
        def __call__(self, tokens):
            return super().__call__(tokens) * tokens.columns["quality"]

    assert check_loss(ByColumn(), columns=["quality"], skip=["pickling"])
    assert "'quality'" in broken(check_loss, ByColumn(), skip=["pickling"])["needs_suffice"]
