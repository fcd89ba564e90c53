"""Claims about options: how they are declared, read from text, typed by who takes them, and checked."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import (
    CheckedOptions,
    Rule,
    call_with_options,
    check_options,
    checked,
    option,
    parse_options,
    read_loosely,
    typed_options,
)
from rstar2_env.core.options.text import split_list

if TYPE_CHECKING:
    from decimal import Decimal


JSON = st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one))


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Room(CheckedOptions):
    wall_s: float = option(5.0, above=0, unit="seconds")
    beds: int = option(2, least=1, most=8)
    share: float = option(0.5, least=0, below=1)
    view: Literal["sea", "garden"] = "sea"
    guests: tuple[str, ...] = ()
    rent: float | None = option(None, least=0)
    key: str | None = option(None, least=2, most=4)
    warm: bool = False
    meals: Sequence[Annotated[str, Rule(choices=("lunch", "dinner"))]] = option((), least=0)


def part(
    level: Annotated[int, Rule(least=1)] = 1,
    *,
    split: str = "train",
    corrupt: bool = False,
    rate: float = 0.5,
    names: Sequence[str] = (),
    sizes: tuple[int, int] = (1, 2),
    either: int | str | None = None,
    room: Room | None = None,
    limits: Room | Mapping[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    weights: dict[str, float] | None = None,
    path: Path | None = None,
    colour: Colour = Colour.RED,
    text_or_many: str | Sequence[str] | None = None,
    anything: Any = None,
    unresolved: Decimal | None = None,
) -> dict[str, Any]:
    return locals()


def given_as(text: str) -> Any:
    """What the part gets for ``name=value``."""
    ((name, _),) = parse_options([text]).items()
    return call_with_options("part 'x'", part, parse_options([text]))[name]


class TestPairs:
    def test_values_stay_text_until_someone_takes_them(self):
        assert parse_options(["a=3", "b=true", "d=text=more", "e="]) == {
            "a": "3",
            "b": "true",
            "d": "text=more",
            "e": "",
        }

    def test_dotted_names_are_dicts(self):
        assert parse_options(["a.b=1", "a.c.d=2", "e=3"]) == {"a": {"b": "1", "c": {"d": "2"}}, "e": "3"}

    @pytest.mark.parametrize("pair", ["a", "=3", "a-b=3", "3=a", "", "a..b=3", ".a=1", "a.=1"])
    def test_what_is_no_pair_is_refused(self, pair):
        with pytest.raises(ConfigurationError, match="name=value"):
            parse_options([pair])

    @pytest.mark.parametrize("pairs", [["a=1", "a=2"], ["a.b=1", "a.b=2"], ["a=1", "a.b=2"], ["a.b=2", "a=1"]])
    def test_a_name_that_comes_twice_is_refused(self, pairs):
        with pytest.raises(ConfigurationError, match="given twice"):
            parse_options(pairs)

    def test_without_a_signature_json_and_pythons_words_are_read(self):
        read = read_loosely(
            parse_options(["a=3", "b=true", "c=[1, 2]", "d=text", "e=", 'g="3"', "h=False", "i.j=None"])
        )
        assert read == {"a": 3, "b": True, "c": [1, 2], "d": "text", "e": "", "g": "3", "h": False, "i": {"j": None}}
        assert type(read["d"]) is str


class TestText:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("level=3", 3),
            ("level=1e3", 1000),
            ("split=3", "3"),
            ("split=true", "true"),
            ('split="3"', "3"),
            ("corrupt=False", False),
            ("corrupt=false", False),
            ("corrupt=no", False),
            ("corrupt=0", False),
            ("corrupt=True", True),
            ("corrupt=yes", True),
            ("rate=1e-5", 1e-5),
            ("rate=1", 1.0),
            ("names=a,b", ["a", "b"]),
            ('names=["a,b"]', ["a,b"]),
            ("names=one", ["one"]),
            ("names=", []),
            ("sizes=3,4", (3, 4)),
            ("sizes=[3, 4]", (3, 4)),
            ("either=3", 3),
            ("either=three", "three"),
            ("either=None", None),
            ("either=null", None),
            ("room.wall_s=2", Room(wall_s=2.0)),
            ('room={"beds": 3}', Room(beds=3)),
            ("room.guests=a,b", Room(guests=("a", "b"))),
            ("room.rent=none", Room(rent=None)),
            ("limits.beds=3", {"beds": 3}),
            ("more.a.b=3", {"a": {"b": 3}}),
            ("weights.a=3", {"a": 3.0}),
            ("path=/a/b", Path("/a/b")),
            ("colour=blue", Colour.BLUE),
            ("colour=BLUE", Colour.BLUE),
            ("text_or_many=a,b", "a,b"),
            ('text_or_many=["a", "b"]', ["a", "b"]),
            ("anything=False", False),
            ("anything=3", 3),
            ("unresolved=3", 3),
        ],
    )
    def test_is_read_as_the_annotation_says(self, text, value):
        read = given_as(text)
        assert read == value
        assert type(read) is type(value)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("level=0", "level must be an integer of at least 1, not 0."),
            ("level=abc", "level must be an integer of at least 1, not 'abc'."),
            ("level=2.5", "level must be an integer of at least 1, not '2.5'."),
            ("corrupt=maybe", "corrupt must be true or false, not 'maybe'."),
            ("rate=nan", "rate must be a finite number, not nan."),
            ("room.wall_s=-1", "room.wall_s must be a positive number of seconds, not -1.0."),
            ("room.beds=9", "room.beds must be an integer from 1 to 8, not 9."),
            ("limits.share=1", "limits.share must be a number of at least 0 and below 1, not 1.0."),
            ("room.view=see", "room.view must be one of 'sea', 'garden', not 'see'. Did you mean 'sea'?"),
            ("room.bed=1", "The option 'room' has no option 'room.bed'. Did you mean 'beds'?"),
            ("more=3", "more must be a dict, or None, not '3'."),
            ("sizes=3", r"sizes must be a list of 2 integers, not"),
            ("colour=green", "colour must be one of 'red', 'blue', not 'green'."),
            ("weights.a=b", "weights.a must be a number, not 'b'."),
        ],
    )
    def test_that_does_not_fit_names_the_option_as_it_was_written(self, text, message):
        with pytest.raises(ConfigurationError) as caught:
            given_as(text)
        assert str(caught.value).startswith(message)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "limits=3",
                "--set limits must be a dict, or none, not '3'. As text, write --set limits.OPTION=VALUE, or JSON. It "
                "takes: wall_s, beds, share, ",
            ),
            ("more=3", "--set more must be a dict, or none, not '3'. As text, write --set more.OPTION=VALUE, or JSON."),
            ('limits={"beds": 9}', "--set limits.beds must be an integer from 1 to 8, not 9."),
            ('weights={"a": "b"}', "--set weights must be a dict of numbers, or none, not {'a': 'b'}. As text, write"),
        ],
    )
    def test_that_does_not_fit_a_dict_of_the_command_line_says_how_to_write_it(self, text, message):
        with pytest.raises(ConfigurationError) as caught:
            typed_options("part", part, parse_options([text], flag="--set "))
        assert str(caught.value).startswith(message)

    @given(st.integers(min_value=1))
    def test_every_integer_comes_back(self, number):
        assert given_as(f"level={number}") == number

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_every_finite_number_comes_back(self, number):
        assert given_as(f"rate={number!r}") == number

    @given(st.text().filter(lambda text: not text.startswith('"')))
    def test_every_text_comes_back_as_it_was_written(self, text):
        assert given_as(f"split={text}") == text

    @given(st.text())
    def test_every_text_comes_back_from_quotes(self, text):
        assert given_as(f"split={json.dumps(text)}") == text

    @given(st.lists(st.text()))
    def test_every_list_comes_back_from_json(self, texts):
        assert given_as(f"names={json.dumps(texts)}") == texts

    @given(st.lists(st.from_regex(r"[a-z]+", fullmatch=True)))
    def test_words_by_commas_are_a_list(self, words):
        assert given_as(f"names={','.join(words)}") == words

    @given(st.text())
    def test_any_text_is_a_value_or_refused_in_words(self, text):
        for name in ("level", "corrupt", "rate", "names", "sizes", "room", "more", "colour", "either", "weights"):
            try:
                given_as(f"{name}={text}")
            except ConfigurationError as error:
                assert str(error).startswith((f"{name} must be ", f"The option '{name}' "))  # noqa: PT017

    @given(JSON)
    def test_without_an_annotation_all_json_is_read(self, value):
        assert given_as(f"anything={json.dumps(value)}") == value


class TestCalls:
    def test_an_unknown_option_names_the_nearest_and_the_known_ones(self):
        assert call_with_options("part 'x'", part, {"level": 3})["level"] == 3
        with pytest.raises(ConfigurationError, match=r"part 'x' has no option 'levl'. Did you mean 'level'.*split"):
            call_with_options("part 'x'", part, {"levl": 3})

    def test_a_missing_option_is_named(self):
        def needy(model: str, level: int = 1) -> None: ...

        with pytest.raises(ConfigurationError, match=r"part 'x' needs model\. It takes: model, level\."):
            call_with_options("part 'x'", needy, {"level": 3})

    def test_a_type_error_inside_the_part_is_not_blamed_on_the_options(self):
        def broken() -> None:
            raise TypeError("our own")

        with pytest.raises(TypeError, match="our own"):
            call_with_options("part", broken, {})

    def test_values_that_are_no_text_are_checked_too(self):
        with pytest.raises(ConfigurationError, match="level must be an integer of at least 1, not 'abc'"):
            call_with_options("part", part, {"level": "abc"})
        with pytest.raises(ConfigurationError, match="corrupt must be true or false, not 'False'"):
            call_with_options("part", part, {"corrupt": "False"})

    def test_an_objects_class_is_no_ones_business(self):
        def takes(player: np.random.Generator | None = None) -> Any:
            return player

        stand_in = object()
        assert call_with_options("part", takes, {"player": stand_in}) is stand_in
        with pytest.raises(ConfigurationError, match="player must be a Generator, or None, not 'Bob'"):
            call_with_options("part", takes, {"player": "Bob"})

    def test_a_class_that_passes_options_on_is_typed_by_its_bases(self):
        typed = typed_options("child", Child, parse_options(["own=3", "warm=no", "level=2"]))
        assert typed == {"own": "3", "warm": False, "level": 2}
        with pytest.raises(ConfigurationError, match=r"Did you mean 'warm'\? It takes: own, level, warm, beds"):
            typed_options("child", Child, {"worm": 1})

    def test_a_function_that_takes_anything_gets_anything(self):
        def open_ended(level: int = 1, **more: Any) -> dict[str, Any]:
            return {"level": level, **more}

        assert call_with_options("it", open_ended, parse_options(["level=2", "x=True", "y=z"])) == {
            "level": 2,
            "x": True,
            "y": "z",
        }

    def test_a_default_always_fits(self):
        def sloppy(level: int = None) -> Any:  # type: ignore[assignment]  # noqa: RUF013  # as many write it
            return level

        assert call_with_options("it", sloppy, {"level": None}) is None


class Base:
    @checked
    def __init__(self, *, level: Annotated[int, Rule(least=1)] = 1, warm: bool = False) -> None:
        self.level, self.warm = level, warm


@dataclass
class Knobs:
    beds: int = 1


class Child(Base):
    def __init__(self, own: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.own = own

    @classmethod
    def more_options(cls) -> tuple[type, ...]:
        return (Knobs,)


class TestRecords:
    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"wall_s": 0}, "wall_s must be a positive number of seconds, not 0."),
            ({"wall_s": math.inf}, "wall_s must be a finite positive number of seconds, not inf."),
            ({"wall_s": math.nan}, "wall_s must be a finite positive number of seconds, not nan."),
            ({"wall_s": "5"}, "wall_s must be a positive number of seconds, not '5'."),
            ({"wall_s": None}, "wall_s must be a positive number of seconds, not None."),
            ({"beds": True}, "beds must be an integer from 1 to 8, not True."),
            ({"beds": 2.0}, "beds must be an integer from 1 to 8, not 2.0."),
            ({"view": "see"}, "view must be one of 'sea', 'garden', not 'see'. Did you mean 'sea'?"),
            ({"guests": "ab"}, "guests must be a list of strings, not 'ab'."),
            ({"guests": [1]}, "guests must be a list of strings, not (1,)."),
            ({"rent": -1}, "rent must be a number of at least 0, or None, not -1."),
            ({"key": "a"}, "key must be a string of 2 to 4 characters, or None, not 'a'."),
            ({"warm": 1}, "warm must be true or false, not 1."),
            (
                {"meals": ["brunch"]},
                "meals must be a list of at least 0 strings, each one of 'lunch', 'dinner', not ['brunch'].",
            ),
        ],
    )
    def test_say_what_they_expected_and_what_came(self, values, message):
        with pytest.raises(ConfigurationError) as caught:
            Room(**values)
        assert str(caught.value) == message

    def test_take_what_fits(self):
        room = Room(wall_s=3, beds=np.int64(4), share=0, guests=["a"], rent=np.float32(2), key="abc", warm=True)
        assert room.guests == ("a",)
        assert room.beds == 4

    def test_name_what_they_belong_to(self):
        @dataclass
        class Plain:
            beds: int = option(1, least=1)

        plain = Plain(beds=0)
        with pytest.raises(ConfigurationError, match=r"Plain\.beds must be an integer of at least 1, not 0"):
            check_options(plain, "Plain.")

    def test_inherit_their_fields_with_the_names_of_where_they_were_written(self):
        @dataclass(frozen=True)
        class Suite(Room):
            rooms: int = option(2, least=2)

        with pytest.raises(ConfigurationError, match="view must be one of"):
            Suite(view="none")
        with pytest.raises(ConfigurationError, match="rooms must be an integer of at least 2"):
            Suite(rooms=1)

    @given(st.integers() | st.floats() | st.text() | st.none() | st.booleans())
    def test_are_made_with_fitting_values_alone(self, value):
        fits = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 8
        if fits:
            assert Room(beds=value).beds == value
        else:
            with pytest.raises(ConfigurationError, match="beds must be an integer from 1 to 8"):
                Room(beds=value)


class TestCheckedFunctions:
    def test_check_their_arguments_at_every_call(self):
        assert Base(level=2).level == 2
        with pytest.raises(ConfigurationError, match="level must be an integer of at least 1, not 0"):
            Base(level=0)

    def test_read_text_that_reaches_them(self):
        assert Base(**parse_options(["warm=False"])).warm is False

    def test_refuse_unknown_names_with_all_that_the_callers_class_takes(self):
        with pytest.raises(ConfigurationError, match=r"The Child has no option 'leve'. Did you mean 'level'\?.*own"):
            Child(leve=3)
        with pytest.raises(TypeError, match="leve"):  # as Python's own refusal is
            Child(leve=3)

    def test_check_positional_arguments(self):
        @checked
        def add(first: int, second: Annotated[int, Rule(most=3)] = 1) -> int:
            return first + second

        assert add(1, 2) == 3
        with pytest.raises(ConfigurationError, match="second must be an integer of at most 3, not 4"):
            add(1, 4)


@pytest.mark.parametrize(
    ("text", "parts"),
    [("a,b", ["a", "b"]), ("[1,2],b", ["[1,2]", "b"]), ('"a,b",c', ['"a,b"', "c"]), ("[a,b", ["[a", "b"]), ("", [])],
)
def test_commas_in_brackets_and_quotes_part_nothing(text, parts):
    assert split_list(text) == parts
