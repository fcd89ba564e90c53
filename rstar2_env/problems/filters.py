r"""Conditions on the problems of a source, written as text for command lines and configurations.

A condition is ``FIELD OPERATOR VALUE``: the field is ``question``, ``answer``, ``id``, ``source`` or a name of ``meta``
(dots descend into objects), or ``len(FIELD)``; operators are ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``~`` (a
regular expression matches somewhere) and ``!~`` (it does not). The value is JSON or plain text. All conditions must
hold. For example, ``answer ~ ^-?\d+$`` keeps only integer answers, on which rStar2-Agent trains. Not covered: "or",
arithmetic.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems.problem import Problem

Condition: TypeAlias = Callable[[Problem], bool]
"""Function that returns whether a problem is kept."""

_WRITTEN = re.compile(
    r"\s*(?P<len>len\()?\s*(?P<field>[\w.\-]+)\s*\)?\s*(?P<operator>==|!=|<=|>=|!~|~|<|>)\s*(?P<value>.*?)\s*",
    re.DOTALL,
)
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Where:
    """One condition on problems, such as ``level <= 3``.

    Attributes:
        field: Path of the field, outermost name first.
        operator: ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, or ``~`` and ``!~`` (the text matches a regular
            expression, or does not).
        value: The value that the field is compared with.
        length: Whether the length of the field is compared instead of its value.
    """

    field: tuple[str, ...]
    operator: str
    value: Any
    length: bool = False

    def __call__(self, problem: Problem) -> bool:
        """Return whether a problem meets the condition; a problem without the field meets only ``!=`` and ``!~``."""
        found = _look_up(problem, self.field)
        if found is _ABSENT or (self.length and not hasattr(found, "__len__")):
            return self.operator in ("!=", "!~")
        if self.length:
            found = len(found)
        if self.operator in ("~", "!~"):
            return (re.search(self.value, str(found)) is not None) == (self.operator == "~")
        value = self.value
        if isinstance(found, str) and not isinstance(value, str):
            found = _number(found)
        try:
            return bool(_COMPARISONS[self.operator](found, value))
        except TypeError:
            return False


def parse_where(written: str) -> Where:
    """Parse one condition.

    Raises:
        ConfigurationError: The condition does not have the form FIELD OPERATOR VALUE.
    """
    match = _WRITTEN.fullmatch(written) if isinstance(written, str) else None
    if match is None or not match["value"]:
        raise ConfigurationError(
            "A condition must have the form FIELD OPERATOR VALUE, such as 'level <= 3' or 'answer ~ ^[0-9]+$'; got "
            f"{written!r}."
        )
    sign, text = match["operator"], match["value"]
    value: Any = text
    if sign in ("~", "!~"):
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigurationError(f"{written!r}: {text!r} is not a regular expression: {error}.") from error
    else:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    return Where(tuple(match["field"].split(".")), sign, value, bool(match["len"]))


def make_where(where: str | Condition | Iterable[str | Condition] | None) -> tuple[Condition, ...]:
    """Parse conditions: a string, a function of a problem, or several of these.

    Raises:
        ConfigurationError: An item of ``where`` is neither a condition nor a function.
    """
    if where is None:
        return ()
    several = [where] if isinstance(where, str) or callable(where) else list(where)
    return tuple(item if callable(item) else parse_where(item) for item in several)


def field_of(problem: Problem, name: str) -> Any:
    """The value of a field, named as in a condition; ``None`` if the problem does not have such a field."""
    found = _look_up(problem, tuple(name.split(".")))
    return None if found is _ABSENT else found


def _look_up(problem: Problem, path: tuple[str, ...]) -> Any:
    if len(path) == 1 and path[0] in ("id", "question", "answer", "source"):
        return getattr(problem, path[0])
    value: Any = problem.meta
    for key in path[1:] if path[0] == "meta" and "meta" not in problem.meta else path:
        if not isinstance(value, Mapping) or key not in value:
            return _ABSENT
        value = value[key]
    return value


def _number(text: str) -> Any:
    try:
        return float(text.replace(",", "")) if "." in text or "e" in text.lower() else int(text.replace(",", ""))
    except ValueError:
        return text
