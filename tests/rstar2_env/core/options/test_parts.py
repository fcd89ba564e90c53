"""The one notation for a part with options: text, tables and lists say the same, and mistakes are named."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.declare import read_loosely
from rstar2_env.core.options.parts import Part, make_part, read_part, write_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.text import split_list, split_parts

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


class Noise:
    def __init__(self, rate: float = 0.1, kinds: str = "") -> None:
        self.rate, self.kinds = rate, kinds


def loosely(part):
    """The part with the text of its options read as it is where no signature says how."""
    return Part(part.name, read_loosely(part.options), part.made_by)


@pytest.fixture
def registry():
    made = Registry("wrapper")
    made.register("noise", Noise)
    made.register("quiet", Noise)
    return made


class TestReading:
    @pytest.mark.parametrize(
        "written",
        [
            "noise:rate=0.5,kinds=lost",
            {"name": "noise", "rate": 0.5, "kinds": "lost"},
            ["noise", {"rate": 0.5, "kinds": "lost"}],
            ["noise:rate=0.5", {"kinds": "lost"}],
            Part("noise", {"rate": 0.5, "kinds": "lost"}),
        ],
    )
    def test_text_tables_and_lists_say_the_same(self, written):
        assert loosely(read_part(written)) == Part("noise", {"rate": 0.5, "kinds": "lost"})

    @pytest.mark.parametrize("written", ["noise", {"name": "noise"}, ["noise"], ["noise", {}]])
    def test_options_may_be_left_out(self, written):
        assert read_part(written) == Part("noise")

    @pytest.mark.parametrize(
        ("text", "name", "options"),
        [
            ("./my.py:Noise:rate=1", "./my.py:Noise", {"rate": 1}),
            ("my.parts:Noise:rate=1", "my.parts:Noise", {"rate": 1}),
            ("./my.py:rate=1", "./my.py", {"rate": 1}),
            ("./my.py:Noise", "./my.py:Noise", {}),
            ("judge:url=http://host:80/v1?a=b", "judge", {"url": "http://host:80/v1?a=b"}),
            ('noise:rate={"a": 1, "b": 2},kinds="a,b"', "noise", {"rate": {"a": 1, "b": 2}, "kinds": "a,b"}),
        ],
    )  # fmt: skip
    def test_the_name_ends_where_the_first_option_begins(self, text, name, options):
        assert loosely(read_part(text)) == Part(name, options)

    def test_a_class_is_a_part_of_its_own_name(self):
        assert read_part(Noise) == Part("Noise", {}, Noise)

    @given(name=NAMES, options=st.dictionaries(NAMES, JSON, max_size=4))
    def test_what_is_written_is_read_again(self, name, options):
        assert loosely(read_part(write_part(name, options))) == Part(name, options)

    @given(st.text())
    def test_any_text_is_a_part_or_a_mistake_of_the_user(self, text):
        with suppress(ConfigurationError):
            assert isinstance(read_part(text), Part)

    @pytest.mark.parametrize(
        ("written", "said"),
        [
            ("noise:rate=1,loud", "The wrapper 'noise:rate=1,loud': Expected an option as name=value, got 'loud'"),
            ("noise:rate=1,rate=2", "'rate' is given twice"),
            ("", "does not have a name"),
            ({"rate": 1}, "does not have a name"),
            ({"name": "noise", 3: 1}, "an option whose name is not a string: 3"),
            (["noise", 3], r"\[name, options\]; got \['noise', 3\]"),
            ([], r"\[name, options\]"),
            (7, "got 7"),
        ],
    )
    def test_a_mistake_shows_what_was_written(self, written, said):
        with pytest.raises(ConfigurationError, match=said):
            read_part(written, "wrapper")


class TestLists:
    @pytest.mark.parametrize(
        ("text", "items"),
        [
            ("a", ["a"]),
            ("a+b", ["a", "b"]),
            ("(a:x=1,y=2)+b", ["a:x=1,y=2", "b"]),
            ("(a:k=(c+d))+b", ["a:k=(c+d)", "b"]),
            ("(a)(b)", ["(a)(b)"]),
            ("", []),
        ],
    )
    def test_items_are_joined_by_plus_and_brackets_protect_them(self, text, items):
        assert split_parts(text) == items

    @given(st.lists(st.from_regex(r"[a-z0-9 .]{1,5}", fullmatch=True)), st.sampled_from(",+;"))
    def test_plain_items_come_back_as_they_were_joined(self, items, separator):
        assert split_list(separator.join(items), separator) == items


class TestMaking:
    def test_a_part_is_found_and_called_with_its_options(self, registry):
        made = make_part(registry, "noise:rate=0.5", kinds="lost", rate=0.9)
        assert (made.rate, made.kinds) == (0.5, "lost")
        assert isinstance(make_part(registry, Noise), Noise)

    def test_an_unknown_name_suggests_the_nearest(self, registry):
        with pytest.raises(UnknownNameError, match=r"no wrapper named 'nois'\. Did you mean 'noise'"):
            make_part(registry, "nois:rate=1")

    def test_an_unknown_option_names_the_part_and_suggests_the_nearest(self, registry):
        with pytest.raises(ConfigurationError, match=r"wrapper 'noise'.*Did you mean 'rate'"):
            make_part(registry, "noise:rat=1")

    def test_options_without_a_name_are_told_from_a_module_of_that_name(self, registry):
        with pytest.raises(ConfigurationError, match=r"options of the wrapper 'noise' as name=value, got '0\.1'"):
            make_part(registry, "noise:0.1")
