"""``cispo``: the bound of the weight, written as each source writes it, and a gradient for every token."""

import math

import pytest
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import LOSSES
from rstar2_env.trainers.losses.cispo import Cispo

RATIOS = [0.05, 0.5, 1.0, 3.0, 40.0]


def weights(**options):
    """The weight of each ratio, from the gradient that is left."""
    batch = tokens([[math.log(ratio) for ratio in RATIOS]], old=[[0.0] * 5], advantage=[[2.0, -2.0, 2.0, -2.0, 2.0]])
    Cispo(**options)(batch).sum().backward()
    return (-batch.logp.grad / batch.advantage)[0].tolist()


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("TRL, epsilon_high=5", {}, [0.05, 0.5, 1, 3, 5]),
        ("TRL, epsilon_high=2", {"high": 1.0}, [0.05, 0.5, 1, 2, 2]),
        ("verl, 0.2 and 0.2", {"low": 0.2, "high": 0.2}, [0.8, 0.8, 1, 1.2, 1.2]),
        ("SkyRL, 1 and 4", {"low": 1.0, "high": 4.0}, [0.05, 0.5, 1, 3, 5]),
    ],
)
def test_the_weight_is_bounded_as_in_each_source(source, options, expected):
    assert weights(**options) == pytest.approx(expected)


def test_the_value_is_the_weight_times_the_log_probability():
    batch = tokens([[-1.0]], old=[[-1.0 - math.log(9)]], advantage=[[3.0]])
    assert Cispo()(batch).item() == pytest.approx(-5 * 3 * -1.0)


def test_against_the_engine_it_needs_nothing_and_is_not_corrected():
    batch = tokens([[0.0]], old=[[0.0]], sampled=[[-math.log(3)]])
    own = Cispo(anchor="sampled")
    own(batch).sum().backward()
    assert batch.logp.grad.item() == pytest.approx(-3)
    assert (own.needs, own.corrected) == (frozenset(), False)
    assert (Cispo().needs, Cispo().corrected) == (frozenset({"old"}), True)


def test_it_logs_how_many_weights_are_bounds():
    logs = [[math.log(ratio) for ratio in RATIOS]]
    batch = tokens(logs, old=[[0.0] * 5], mask=[[1, 1, 1, 1, 0]])
    figures = {name: (int(a), int(b)) for name, (a, b) in Cispo(low=0.2, high=0.2).figures(batch).items()}
    assert figures == {"clip/low": (2, 4), "clip/high": (1, 4)}


@pytest.mark.parametrize("wrong", ["low=2", "high=-1", "anchor=reference"])
def test_an_option_out_of_its_range_is_refused(wrong):
    with pytest.raises(ConfigurationError, match=wrong.split("=")[0]):
        make_part(LOSSES, f"cispo:{wrong}")
