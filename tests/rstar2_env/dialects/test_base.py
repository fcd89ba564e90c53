"""Dialects are had by name, with options or without, or as they are."""

import pytest

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.dialects import DIALECTS, Dialect, make_dialect

SECRET = "\\boxed{7}"


@pytest.mark.parametrize("name", DIALECTS.names())
def test_every_registered_dialect_keeps_the_protocol_under_its_own_name(name):
    dialect = make_dialect(name)
    assert isinstance(dialect, Dialect)
    assert dialect.name == name


def test_a_dialect_is_returned_as_it_is():
    dialect = make_dialect("rstar2")
    assert make_dialect(dialect) is dialect


def test_options_come_by_keyword_or_written_in_the_name():
    assert make_dialect("rstar2").answer([SECRET]) is None
    assert make_dialect("rstar2", boxed_anywhere=True).answer([SECRET]) == "7"
    assert make_dialect("rstar2:boxed_anywhere=true").answer([SECRET]) == "7"


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'rstar2'"):
        make_dialect("rstar")


@pytest.mark.parametrize("spec", ["rstar2:box_anywhere=true", "rstar2:boxed_anywhere"])
def test_an_option_that_does_not_fit_is_named(spec):
    with pytest.raises(ConfigurationError, match="boxed_anywhere"):
        make_dialect(spec)


@pytest.mark.parametrize(
    "thing", [None, 7, object(), type(make_dialect("rstar2"))], ids=["None", "7", "object", "class"]
)
def test_what_is_no_dialect_is_refused_at_once(thing):
    with pytest.raises(ConfigurationError, match="`dialect` must be"):
        make_dialect(thing)


def test_options_for_a_finished_dialect_are_refused():
    with pytest.raises(ConfigurationError, match="boxed_anywhere"):
        make_dialect(make_dialect("rstar2"), boxed_anywhere=True)
