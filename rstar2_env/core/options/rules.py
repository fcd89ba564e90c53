"""Checks and describes the valid values of an option, from its annotation and its ``Rule``.

Covered: whether a value is valid, and words for the valid values. Not covered: how text is parsed
(``rstar2_env.core.options.text``), and where annotations come from (``rstar2_env.core.options.targets``).
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import functools
import inspect
import math
import numbers
import operator
import os
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

_PLAIN = (str, bytes, bool, int, float, list, tuple, dict, set, type(None))
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Rule:
    """Constraints on an option beyond its type.

    For a parameter, write ``Annotated[int, Rule(least=1)]``; for a field of a dataclass, ``option(5, least=1)``.

    Attributes:
        least: Smallest number; for a text or a list, the smallest length.
        most: Largest number; for a text or a list, the largest length.
        above: A number must be larger than this.
        below: A number must be smaller than this.
        choices: All valid values.
        unit: Unit of a number ("seconds"), for the error message.
        finite: Whether to refuse infinities; NaN is always refused.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] = ()
    unit: str = ""
    finite: bool = True

    def holds(self, value: Any) -> bool:
        """Whether a number is in the range."""
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def range_in_words(self) -> str:
        """Describe the range, as an ending of a message: " of at least 1", " from 0 to 1"; empty without bounds."""
        if self.least is not None and self.most is not None:
            return f" from {self.least:g} to {self.most:g}" if _short(self) else f" from {self.least} to {self.most}"
        lower = f"of at least {self.least}" if self.least is not None else ""
        lower = f"above {self.above}" if self.above is not None else lower
        upper = f"at most {self.most}" if self.most is not None else ""
        upper = f"below {self.below}" if self.below is not None else upper
        if not lower and upper.startswith("at"):
            upper = f"of {upper}"
        words = " and ".join(filter(None, (lower, upper)))
        return f" {words}" if words else ""


def _short(rule: Rule) -> bool:
    return all(bound is not None and abs(bound) < 1e6 for bound in (rule.least, rule.most))


NO_RULE = Rule()


@dataclass(frozen=True, slots=True)
class FromRun:
    """Annotation of a part's option that a training run fills in if the user does not set it.

    ``limit: Annotated[int | None, FromRun("rollout.max_episode_tokens")] = None``

    Attributes:
        option: Dotted name of the run's option that provides the value.
    """

    option: str


def unannotated(hint: Any, rule: Rule = NO_RULE) -> tuple[Any, Rule]:
    """Split ``Annotated[...]`` into type and rule; the argument ``rule``, if given, overrides the annotation's rule."""
    while get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        found = [note for note in notes if isinstance(note, Rule)]
        rule = found[0] if rule is NO_RULE and found else rule
    if isinstance(hint, typing.NewType):
        return unannotated(hint.__supertype__, rule)
    return hint, rule


def members(hint: Any) -> tuple[Any, ...]:
    """Return the types in a union; for any other annotation, only the annotation itself."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(member for part in get_args(hint) for member in members(part))
    return (hint,)


def says_nothing(hint: Any) -> bool:
    """Whether an annotation allows any value."""
    return hint is Any or hint is object or hint is inspect.Parameter.empty or isinstance(hint, (TypeVar, str))


def is_list(hint: Any) -> bool:
    """Whether an annotation is a list, a tuple, a set or one of their abstract types."""
    kind = get_origin(hint) or hint
    if not isinstance(kind, type) or issubclass(kind, (str, bytes)) or kind in (Mapping, dict):
        return False
    return kind in (list, tuple, set, frozenset, Sequence, Set, Collection, Iterable)


def is_mapping(hint: Any) -> bool:
    """Whether an annotation is a dict, a ``Mapping`` or a ``TypedDict``."""
    kind = get_origin(hint) or hint
    return isinstance(kind, type) and issubclass(kind, Mapping)


def is_record(hint: Any) -> bool:
    """Whether an annotation is a dataclass."""
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def is_valid(value: Any, hint: Any, rule: Rule = NO_RULE) -> bool:
    """Whether a value is valid for an annotation and a rule."""
    hint, rule = unannotated(hint, rule)
    alternatives = members(hint)
    if len(alternatives) > 1:
        return any(is_valid(value, member, NO_RULE if member is type(None) else rule) for member in alternatives)
    if hint is None or hint is type(None):
        return value is None
    if rule.choices or get_origin(hint) is Literal:
        return _among(value, rule.choices or get_args(hint))
    if says_nothing(hint):
        return rule == NO_RULE or _has_type(value, float, rule)
    inner = get_args(hint)
    if is_list(hint):
        return _is_valid_list(value, get_origin(hint) or hint, inner, rule)
    if is_mapping(hint):
        every = value.values() if len(inner) == 2 and isinstance(value, Mapping) else ()
        return isinstance(value, Mapping) and all(is_valid(one, inner[1]) for one in every)
    return _has_type(value, hint, rule)


def _is_valid_list(value: Any, kind: Any, inner: Sequence[Any], rule: Rule) -> bool:
    if not isinstance(value, (Sequence, Set)) or isinstance(value, (str, bytes)):
        return kind is Iterable and isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    if kind is tuple and inner and Ellipsis not in inner:
        return len(value) == len(inner) and all(map(is_valid, value, inner))
    return rule.holds(len(value)) and all(is_valid(item, inner[0]) for item in value if inner)


def _has_type(value: Any, hint: Any, rule: Rule) -> bool:
    if hint is bool:
        return isinstance(value, bool)
    if hint is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and rule.holds(value)
    if hint is float:
        return (
            isinstance(value, numbers.Real)
            and not isinstance(value, bool)
            and (math.isfinite(value) if rule.finite else not math.isnan(value))
            and rule.holds(value)
        )
    if hint is str:
        return isinstance(value, str) and rule.holds(len(value))
    kind = get_origin(hint) or hint
    if kind is Callable:
        return callable(value)
    if not isinstance(kind, type):
        return True
    if issubclass(kind, (type, os.PathLike, enum.Enum)):
        return isinstance(value, kind)
    # Refuse only plain values of another type; the code that receives an object gives a better message about it.
    plain = () if getattr(kind, "_is_protocol", False) else tuple(item for item in _PLAIN if issubclass(item, kind))
    return not isinstance(value, _PLAIN) or isinstance(value, plain)


def _among(value: Any, choices: Iterable[Any]) -> bool:
    return any(value == choice and isinstance(value, bool) is isinstance(choice, bool) for choice in choices)


def in_words(hint: Any, rule: Rule = NO_RULE) -> str:
    """Describe the valid values of an option, for an error message: "an integer of at least 1, or None"."""
    hint, rule = unannotated(hint, rule)
    alternatives = members(hint)
    if rule.choices:
        words = [_one_of(choice for choice in rule.choices if choice is not None)]
    else:
        words = [_words(member, rule) for member in alternatives if member is not type(None)]
    text = " or ".join(dict.fromkeys(words))
    none = type(None) in alternatives or None in (rule.choices or ())
    return f"{text}, or None" if none and text else text or "None"


def _one_of(choices: Iterable[Any]) -> str:
    return f"one of {', '.join(map(repr, choices))}"


def _words(hint: Any, rule: Rule) -> str:
    hint, rule = unannotated(hint, rule)
    if says_nothing(hint):
        return f"a number{rule.range_in_words()}"
    if get_origin(hint) is Literal:
        return _one_of(get_args(hint))
    if hint is bool:
        return "true or false"
    if hint in (int, float):
        return _number(hint is int, rule)
    if hint is str:
        return f"a string{_length(rule, 'character')}"
    inner = get_args(hint)
    if is_list(hint):
        parts = {_plural(item) for item in inner if item is not Ellipsis}
        if (get_origin(hint) or hint) is tuple and inner and Ellipsis not in inner:
            return f"a list of {len(inner)} {parts.pop() if len(parts) == 1 else 'values'}"
        what = parts.pop() if len(parts) == 1 else "values"
        kind, inner_rule = unannotated(inner[0]) if inner else (Any, NO_RULE)
        each = f", each {in_words(kind, inner_rule)}" if _all_choices(kind, inner_rule) else ""
        length = _length(rule, what.removesuffix("s")) if rule.range_in_words() else f" of {what}"
        return f"a list{length}{each}"
    if is_mapping(hint):
        return f"a dict of {_plural(inner[1])}" if len(inner) == 2 and not says_nothing(inner[1]) else "a dict"
    kind = get_origin(hint) or hint
    if kind is Callable:
        return "a function"
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _one_of(member.value for member in kind)
    if isinstance(kind, type) and issubclass(kind, os.PathLike):
        return "a path"
    name = getattr(kind, "__name__", str(kind))
    return f"{'an' if name[:1] in 'AEIO' else 'a'} {name}"


def _number(whole: bool, rule: Rule) -> str:
    positive = rule.above == 0 and rule.most is None and rule.below is None
    kind = "integer" if whole else "number"
    article = "a positive" if positive else "an" if whole else "a"
    unit = f" of {rule.unit}" if rule.unit else ""
    return f"{article} {kind}{unit}" + ("" if positive else rule.range_in_words())


def _length(rule: Rule, what: str) -> str:
    words = rule.range_in_words()
    if not words:
        return ""
    one = 1 in (rule.least, rule.most) and None in (rule.least, rule.most)
    return f"{words.replace(' from ', ' of ')} {what}{'' if one else 's'}"


def _plural(hint: Any) -> str:
    hint, _ = unannotated(hint)
    if is_mapping(hint) or is_list(hint):
        return "dicts" if is_mapping(hint) else "lists"
    names = {str: "strings", int: "integers", float: "numbers", bool: "true or false"}
    return names.get(hint, f"{getattr(hint, '__name__', 'value')}s" if not says_nothing(hint) else "values")


def refusal(name: str, hint: Any, rule: Rule, value: Any) -> str:
    """Return the error message about an invalid value: the option, the valid values, the given value.

    Args:
        name: The option, as the user wrote it.
        hint: Annotation of the option.
        rule: Constraints beyond the annotation.
        value: The given value.
    """
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
    how = ""
    if name.startswith("-"):  # an option of a command; only --set accepts "none"
        hint, how = _in_text(name, *unannotated(hint, rule))
        expected = in_words(hint, rule).replace(", or None", ", or none" if name.startswith("--set ") else "")
    else:
        expected = in_words(hint, rule)
    if isinstance(value, float) and not math.isfinite(value):
        expected = re.sub(r"\ba (positive )?number", r"a finite \1number", expected, count=1)
    hint, rule = unannotated(hint, rule)
    near = did_you_mean(value, _all_choices(hint, rule)) if isinstance(value, str) else ""
    return f"{name} must be {expected}, not {shown}.{near}{how}"


def dict_in_text(name: str, known: Iterable[str] = ()) -> str:
    """Return the end of an error message, which explains how to write a dict as the text of an option.

    Args:
        name: The option, as the user wrote it.
        known: Names of the options in the dict, if they are known.
    """
    names = ", ".join(known)
    return f" As text, write {name}.OPTION=VALUE, or JSON.{f' It takes: {names}.' if names else ''}"


def _in_text(name: str, hint: Any, rule: Rule) -> tuple[Any, str]:
    """Return the annotation with ``dict`` for each dataclass, and a sentence on how to write a dict as text, or ""."""
    alternatives = () if rule.choices else members(hint)
    records = [member for member in alternatives if is_record(member)]
    if not records and not any(map(is_mapping, alternatives)):
        return hint, ""
    known = [field.name for record in records for field in dataclasses.fields(record) if field.init]
    kinds = [dict if member in records else member for member in alternatives]
    return functools.reduce(operator.or_, kinds), dict_in_text(name, known)


def _all_choices(hint: Any, rule: Rule) -> list[str]:
    found = list(rule.choices)
    for member in members(hint):
        if get_origin(member) is Literal:
            found += get_args(member)
        elif isinstance(member, type) and issubclass(member, enum.Enum):
            found += [one.value for one in member]
    return [str(choice) for choice in found]


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return a suggestion for the end of a message, " Did you mean 'max_turns'?"; empty if no known name is similar."""
    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""
