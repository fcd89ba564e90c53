"""``typed``: replaces placeholder words in a check's remedies, such as LOWER, by values computed for a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rstar2_env.diagnosis.record import RunRecord

VALUES: Mapping[str, Callable[[float], float]] = {
    "LOWER": lambda value: value / 10,
    "HIGHER": lambda value: value * 10,
    "LESS": lambda value: max(1, value // 2),
    "FEWER": lambda value: max(1, value // 2),
    "MORE": lambda value: value * 2,
    "SEED": lambda value: value + 1,
}
"""For each placeholder word that follows an option, such as LOWER in ``learning_rate=LOWER``, a function that computes
the replacement from the option's value in the run."""
_WORD = re.compile(rf"([\w.]+)=({'|'.join(VALUES)})\b")


RECORDED: Mapping[str, Callable[[RunRecord], Any]] = {
    "RUN": lambda run: run.name,
    "MODEL": lambda run: run.option("model.path"),
    "ENV": lambda run: run.option("rollout.env"),
    "PROBLEMS": lambda run: run.option("rollout.env_options.problems"),
    "HELD_OUT": lambda run: run.option("eval.env_options.problems"),
}
"""For each placeholder word that stands for a recorded name, such as MODEL, a function that returns this name, or
``None``."""
_RECORDED_WORD = re.compile(rf"(?<=[ =])({'|'.join(RECORDED)})(?= |$)")


_SET = re.compile(r"--set ([\w.]+)=(\S+)")


def typed(changes: Sequence[str], run: RunRecord) -> tuple[str, ...]:
    """Return the remedies that would change a run, with values in place of placeholder words.

    A placeholder word stays if its replacement is unknown. A remedy is left out if it only sets options to the values
    that they have in the run.
    """

    def value_of(found: re.Match[str]) -> str:
        name, word = found.groups()
        own = _own(run, name)
        if own is None or (own == 0 and word != "SEED"):
            return found[0]
        value = VALUES[word](own)
        return f"{name}={value}" if isinstance(value, int) else f"{name}={value:.6g}"

    def recorded(found: re.Match[str]) -> str:
        own = RECORDED[found[0]](run)
        return shlex.quote(own) if isinstance(own, str) and own else found[0]

    remedies = (_RECORDED_WORD.sub(recorded, _WORD.sub(value_of, change)) for change in changes)
    return tuple(remedy for remedy in remedies if not _is_set(remedy, run))


def _is_set(remedy: str, run: RunRecord) -> bool:
    """Whether a remedy only sets options, with ``--set``, to the values that they have in the run."""
    options = _SET.findall(remedy)
    return (
        bool(options) and not _SET.sub("", remedy).strip() and all(_equal(name, value, run) for name, value in options)
    )


def _equal(name: str, text: str, run: RunRecord) -> bool:
    own = _recorded(run, name)
    if own is None:
        group, _, key = name.rpartition(".")
        options = run.option(group)
        return text == "null" and isinstance(options, Mapping) and key in options
    if isinstance(own, bool) or not isinstance(own, (int, float)):
        return str(own).lower() == text.lower()
    try:
        return float(text) == own
    except ValueError:
        return False


def _recorded(run: RunRecord, name: str) -> Any:
    """Return an option's value in a run, from the options of the run, its environment or its parts, or ``None``."""
    if name.startswith("env."):
        value = run.option(name)
        return run.option(f"rollout.env_options.{name.removeprefix('env.')}") if value is None else value
    of_part = _of_part(run, *name.removeprefix("parts.").split("."))
    return run.option(name) if of_part is None else of_part


def _of_part(run: RunRecord, kind: str, *rest: str) -> Any:
    """Return an option of a part (``loss.ppo_clip.high``), or the names of all parts of a kind (``loss``).

    The result is ``None`` if the run recorded no such option or part.
    """
    recorded = run.option(f"parts.{kind}", [])
    parts = [part for part in (recorded if isinstance(recorded, list) else [recorded]) if isinstance(part, Mapping)]
    match rest:
        case ():
            return "+".join(str(part.get("name")) for part in parts) or None
        case (name, field):
            return next((part.get(field) for part in parts if part.get("name") == name), None)
        case (field,) if len(parts) == 1:
            return parts[0].get(field)
    return None


def _own(run: RunRecord, name: str) -> float | None:
    """Return the numeric value of an option in a run; ``None`` if the value is unknown or not a number.

    If the options do not include the learning rate, its largest recorded value is returned.
    """
    value = _recorded(run, name)
    if value is None and name == "optim.learning_rate":
        value = max((rate for _, rate in run.series("learning_rate")), default=None)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
