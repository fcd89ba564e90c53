"""check_hook passes a sound hook and names the one clause that a broken one breaks."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from mutants import broken

from rstar2_env.testing import HOOK_CHECKS, check_hook


@dataclass
class Sound:
    """Doubles the token budget with every third evaluation, halves the KL coefficient, and teaches at the end."""

    every: int = 3

    def __post_init__(self):
        self._seen = 0

    def bind(self, run):
        run.coefficient("kl")
        self.run = run

    def on_evaluate(self, args, state, control, metrics, **kwargs):
        self._seen += 1
        if self._seen % self.every == 0:
            self.run.limits = replace(self.run.limits, max_episode_tokens=2 * self.run.limits.max_episode_tokens)
            self.run.set_coefficient(self.run.coefficient("kl") / 2, "kl")

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.run.steps - 1:
            self.run.sft_step([[{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]])

    def state_dict(self):
        return {"seen": self._seen}

    def load_state_dict(self, state):
        self._seen = state["seen"]


class Plain:
    """A callback that acts on nothing."""

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.last = dict(logs)


class Misspelt(Sound):
    def on_steps_end(self, args, state, control, **kwargs):
        pass


class TakesNoMore(Sound):
    def on_step_end(self, args, state, control):
        pass


class CalledByNobody:
    """Nothing to call."""


class ActsInBind(Sound):
    def bind(self, run):
        super().bind(run)
        run.temperature = 0.5


class AsksTooLate(Sound):
    def bind(self, run):
        self.run = run


class Freezes(Sound):
    def on_evaluate(self, args, state, control, metrics, **kwargs):
        self.run.temperature = 0.0


class BudgetAsANumber(Sound):
    def on_step_begin(self, args, state, control, **kwargs):
        self.run.limits = 2048


class TeachesNothing(Sound):
    def on_step_end(self, args, state, control, **kwargs):
        self.run.sft_step([])


class EachItsOwn(Sound):
    def on_step_begin(self, args, state, control, **kwargs):
        self.run.temperature = 1 + np.random.default_rng().random()


class ForgetsItsCount(Sound):
    def load_state_dict(self, state):
        pass


class KeepsNoState(Sound):
    state_dict = load_state_dict = property()


class BeginsAgain(Sound):
    def on_train_begin(self, args, state, control, **kwargs):
        self.run.temperature = 1.2


MUTANTS = [
    (Misspelt, "events", "calls on_steps_end; the events are"),
    (TakesNoMore, "events", "on_step_end must accept (args, state, control, **kwargs)"),
    (CalledByNobody, "events", "it has none of the methods"),
    (ActsInBind, "binding", "`bind` changed the run"),
    (AsksTooLate, "binding", "in `bind()`, check whether the run has them"),
    (Freezes, "whole_run", "it set the temperature to 0.0"),
    (BudgetAsANumber, "whole_run", "use dataclasses.replace(run.limits, ...)"),
    (TeachesNothing, "whole_run", "an SFT step without a conversation"),
    (EachItsOwn, "processes", "on two processes, the hook behaves differently than on one: temperature"),
    (ForgetsItsCount, "resuming", "when resumed after 5 steps, the hook behaves differently"),
    (KeepsNoState, "resuming", "save the hook's counters in state_dict"),
    (BeginsAgain, "resuming", "initialize only if state.global_step is 0"),
]
ALSO = {
    TakesNoMore: {"whole_run", "processes", "resuming"},
    Freezes: {"processes", "resuming"},
    BudgetAsANumber: {"processes", "resuming"},
    TeachesNothing: {"processes", "resuming"},
    EachItsOwn: {"resuming"},
    ActsInBind: {"resuming"},
}


@pytest.mark.parametrize("hook", [Sound, Plain, Sound(every=1), "kl_schedule:steps=7"], ids=repr)
def test_a_sound_hook_passes_every_check(hook):
    assert check_hook(hook) == list(HOOK_CHECKS)


def test_a_callback_of_transformers_is_a_hook():
    from transformers import TrainerCallback

    class Quiet(TrainerCallback):
        def on_log(self, args, state, control, **kwargs):
            control.should_save = True

    assert check_hook(Quiet) == list(HOOK_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_hook, mutant)
    assert words in found[check]
    assert set(found) <= {check} | ALSO.get(mutant, set())


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(HOOK_CHECKS)


def test_the_terms_of_the_loss_are_those_that_it_needs():
    assert check_hook("kl_schedule:term=distil", terms={"distil": 0.1})
    assert "'distil'" in broken(check_hook, "kl_schedule:term=distil")["whole_run"]
