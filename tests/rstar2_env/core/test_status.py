"""The closed list of statuses, and who is to blame for each."""

import json

import pytest

from rstar2_env.core.status import ToolStatus, error_share

ERRORS = {
    "malformed",
    "unknown_tool",
    "invalid_arguments",
    "syntax_error",
    "exception",
    "timeout",
    "memory",
    "output_limit",
    "blocked",
}


def test_the_list_is_closed_and_in_the_words_of_the_contract():
    assert {str(status) for status in ToolStatus} == ERRORS | {"ok", "empty", "unavailable"}


@pytest.mark.parametrize("status", ToolStatus)
def test_every_status_but_ok_empty_and_unavailable_is_the_policys_error(status):
    assert status.is_error == (status.value in ERRORS)


@pytest.mark.parametrize("status", ToolStatus)
def test_only_unavailable_does_not_count(status):
    assert status.counts == (status is not ToolStatus.UNAVAILABLE)


def test_a_status_is_its_word_in_json_and_in_text():
    assert json.dumps(ToolStatus.TIMEOUT) == '"timeout"'
    assert f"{ToolStatus.TIMEOUT}" == "timeout"


def test_a_word_that_is_no_status_is_refused():
    with pytest.raises(ValueError, match="failed"):
        ToolStatus("failed")


def test_the_share_of_errors_leaves_unavailable_out_of_both_sides():
    assert error_share([ToolStatus.OK, ToolStatus.TIMEOUT, ToolStatus.UNAVAILABLE, ToolStatus.EMPTY]) == 1 / 3


@pytest.mark.parametrize("statuses", [[], [ToolStatus.UNAVAILABLE]])
def test_there_is_no_share_without_a_call_that_counts(statuses):
    assert error_share(statuses) is None


def test_the_share_takes_any_iterable_once():
    assert error_share(status for status in (ToolStatus.OK, ToolStatus.BLOCKED)) == 0.5
