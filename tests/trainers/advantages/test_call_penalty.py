"""``call_penalty``: which tokens are penalized, for which statuses, and how."""

import numpy as np
import pytest
from credit import Said, advantages, episode

from rstar2_env.core.status import ToolStatus

DID_NOT_RUN = {"malformed", "unknown_tool", "invalid_arguments"}
FINE = {"ok", "empty", "unavailable"}


def group(*statuses):
    """Two right and wrong episodes, of which the first makes these calls in its second turn."""
    first = episode(Said(2, 2), Said(3, 1, statuses=statuses), Said(1, 0, 1.0))
    return [first, episode(Said(4, 0, 0.0))]


def of_turns(values):
    """The advantages of the three turns of the first episode."""
    return [values[0][:2], values[0][4:7], values[0][8:]]


def test_the_tokens_of_that_turn_alone_get_the_number():
    values = advantages("call_penalty:of=group_mean", group("malformed"))[0]
    first, second, third = of_turns(values)
    assert (first == 0.5).all()
    assert (second == -5.0).all()
    assert (third == 0.5).all()
    assert values[1] == -0.5


def test_it_may_be_added_to_what_the_other_estimator_gives():
    values = advantages("call_penalty:of=group_mean,how=add,malformed=-2", group("malformed"))[0]
    assert [set(turn) for turn in of_turns(values)] == [{0.5}, {-1.5}, {0.5}]


@pytest.mark.parametrize("status", ToolStatus)
def test_every_status_is_of_one_kind(status):
    malformed, failed = (
        advantages(f"call_penalty:of=group_mean,{options}", group(status))[0]
        for options in ("malformed=-3,failed=none", "malformed=none,failed=-3")
    )
    hit = [np.ndim(values[0]) == 1 and (of_turns(values)[1] == -3).all() for values in (malformed, failed)]
    assert hit == [status in DID_NOT_RUN, status not in DID_NOT_RUN | FINE]


def test_a_failing_program_is_not_penalized_by_default():
    assert advantages("call_penalty:of=group_mean", group("exception")) == [[0.5, -0.5]]


def test_of_several_calls_in_a_turn_the_lowest_number_counts():
    values = advantages("call_penalty:malformed=-1,failed=-4", group("ok", "malformed", "timeout"))[0]
    assert set(of_turns(values)[1]) == {-4.0}


def test_an_injected_fault_is_not_the_policys():
    own = group()
    own[0].injected.append(ToolStatus.TIMEOUT)
    assert advantages("call_penalty:of=group_mean,failed=-4", own) == [[0.5, -0.5]]


def test_what_the_other_estimator_gives_tokens_stays_elsewhere():
    own = group("malformed")
    below, above = (advantages(part, own)[0][0] for part in ("gigpo:invalid=0", "call_penalty:of=(gigpo:invalid=0)"))
    inside = slice(4, 7)
    assert (above[inside] == -5).all()
    assert (np.delete(above, range(4, 7)) == np.delete(below, range(4, 7))).all()
    assert not (below == -5).any()


def test_a_call_that_is_not_penalized_does_not_hide_another_of_its_turn():
    values = advantages("call_penalty:of=group_mean", group("timeout", "malformed", "timeout"))[0]
    assert set(of_turns(values)[1]) == {-5.0}
