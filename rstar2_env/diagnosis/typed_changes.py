"""``typed``: replaces placeholder words in a check's remedies, such as LOWER, by values computed for a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from rstar2_env.diagnosis.record import RunRecord

VALUES: Mapping[str, Callable[[float], float]] = {
    "LOWER": lambda value: value / 10,
    "HIGHER": lambda value: value * 10,
    "LESS": lambda value: max(1, value // 2),
    "FEWER": lambda value: max(1, value // 2),
    "MORE": lambda value: value * 2,
    "SEED": lambda value: value + 1,
}
"""For each placeholder word, a function that computes its replacement from the run's value of the option."""
_WORD = re.compile(rf"([\w.]+)=({'|'.join(VALUES)})\b")


def typed(changes: Sequence[str], run: RunRecord) -> tuple[str, ...]:
    """Return remedies with values in place of placeholder words; a word stays if the option's value is unknown."""

    def value_of(found: re.Match[str]) -> str:
        name, word = found.groups()
        own = _own(run, name)
        if own is None or (own == 0 and word != "SEED"):
            return found[0]
        value = VALUES[word](own)
        return f"{name}={value}" if isinstance(value, int) else f"{name}={value:.6g}"

    return tuple(_WORD.sub(value_of, change) for change in changes)


def _own(run: RunRecord, name: str) -> float | None:
    """Return an option's number in a run; if the learning rate is not an option, return its largest recorded value."""
    value = run.option(name)
    if value is None and name.startswith("env."):
        value = run.option(f"rollout.env_options.{name.removeprefix('env.')}")
    if value is None and name == "optim.learning_rate":
        value = max((rate for _, rate in run.series("learning_rate")), default=None)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
