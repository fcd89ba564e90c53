"""``until``: a run ends at the first figure that meets the criterion."""

from types import SimpleNamespace

import pytest
from hook_events import HookEvents

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.hooks.criterion import read_criterion
from rstar2_env.trainers.hooks.until import Until

METRIC = "eval/pass_rate"


@pytest.mark.parametrize(
    ("criterion", "stopped"),
    [
        (f"{METRIC} >= 0.9", 3),
        (f"{METRIC}>0.9", 4),
        (f"{METRIC} <= 0.1", 2),
        (f"{METRIC} < 0.1", None),
        (f"{METRIC} >= 2", None),
        ("eval/reward >= 0", None),
    ],
)
def test_it_stops_once_the_criterion_is_met(criterion, stopped):
    events = HookEvents(Until(criterion)).logs(float("nan"), 0.1, 0.9, 0.95, metric=METRIC)
    assert events.stopped == stopped
    assert events.noted() == ([3, 4] if stopped == 3 else [] if stopped is None else [stopped])


def test_a_run_that_ends_already_is_not_told_again():
    events = HookEvents(Until(f"{METRIC} >= 0.9"))
    control = SimpleNamespace(should_save=False, should_training_stop=True)
    events.hook.on_log(None, SimpleNamespace(global_step=1), control, logs={METRIC: 1.0})
    assert (events.noted(), control.should_save) == ([], False)


@pytest.mark.parametrize("written", ["pass_rate", "pass_rate = 0.9", "pass_rate >= much", ">= 0.9", "a b >= 1"])
def test_what_is_no_criterion_is_refused(written):
    with pytest.raises(ConfigurationError, match="A criterion must have the form"):
        read_criterion(written)


def test_a_criterion_reads_as_it_is_written():
    for written in ("a/b@2 >= 0.5", "loss < -1e-05", "turns > 2", "pass_rate >= 0.99999999"):
        assert str(read_criterion(written)) == written
