"""Processes that work together: what they exchange, and that none waits for one that failed."""

from __future__ import annotations

import numpy as np
import pytest

from rstar2_env.testing.training.processes import in_each, in_processes
from rstar2_env.trainers.ranks import ONE, OtherProcessError, Together


def test_one_process_is_alone_with_its_values() -> None:
    assert (ONE.rank, ONE.size) == (0, 1)
    assert ONE.gather("a") == ["a"]
    assert ONE.sum(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_values_are_summed_and_gathered_in_the_order_of_the_ranks() -> None:
    def work(ranks):
        with Together(ranks) as together:
            return together.sum(np.array([1.0, together.rank])).tolist(), together.gather(f"from {together.rank}")

    assert in_processes(3, work) == [([3.0, 3.0], ["from 0", "from 1", "from 2"])] * 3


@pytest.mark.parametrize("calls_before", [0, 1, 2])
def test_a_process_that_fails_ends_the_others_wherever_they_are(calls_before: int) -> None:
    def work(ranks):
        with Together(ranks) as together:
            for call in range(2):
                if together.rank == 1 and call == calls_before:
                    raise ValueError("no disk")
                together.gather(call)
            if together.rank == 1:
                raise ValueError("no disk")
        return "went on"

    first, second, third = in_each(3, work)
    assert isinstance(second, ValueError)
    for other in (first, third):
        assert isinstance(other, OtherProcessError)
        assert str(other) == "Process 1 of 3 failed: ValueError: no disk"


def test_two_that_fail_at_once_raise_their_own_errors() -> None:
    def work(ranks):
        with Together(ranks):
            raise ValueError(str(ranks.rank))

    done = in_each(2, work)
    assert [(type(error), str(error)) for error in done] == [(ValueError, "0"), (ValueError, "1")]
