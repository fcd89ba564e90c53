"""Old names of options that were renamed in the last version; calls and recorded files may still use them.

Covered: the options of a function, class or dataclass, and the comparison of a recorded run with the present options.
Not covered: old names of commands and flags (``rstar2_env.cli._calls``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

RENAMED = {
    "timeout": "timeout_s",
    "verify_timeout": "verify_timeout_s",
    "wait_s": "start_timeout_s",
    "start_s": "start_timeout_s",
    "patience_s": "reconnect_timeout_s",
    "stall_s": "stall_timeout_s",
    "session_idle_s": "session_timeout_s",
    "header_s": "header_timeout_s",
    "drain_s": "drain_timeout_s",
    "orphan_s": "orphan_timeout_s",
    "episode_budget": "max_total_episodes",
    "token_budget": "max_total_tokens",
}
"""New name of each renamed option, by its old name; the next version removes the old names."""


def with_new_names(options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return options with old names replaced by the new names.

    Args:
        options: Options by their present or their old names.
        known: The names that the receiving function or class accepts. An old name among them is not replaced.
    """
    return {_present(name, known, options): value for name, value in options.items()}


def named_as(recorded: Any, present: Any) -> Any:
    """Return recorded options with old names replaced, at any depth, by the names that ``present`` uses.

    Args:
        recorded: Options that a run recorded, as JSON values.
        present: The options of the present run, as JSON values.
    """
    if isinstance(recorded, list) and isinstance(present, list) and len(recorded) == len(present):
        return [named_as(one, now) for one, now in zip(recorded, present, strict=True)]
    if not (isinstance(recorded, Mapping) and isinstance(present, Mapping)):
        return recorded
    found = with_new_names(recorded, present)
    return {name: named_as(value, present.get(name)) for name, value in found.items()}


def _present(name: str, known: Collection[str], given: Collection[str]) -> str:
    new = RENAMED.get(name, name)
    return new if name not in known and new in known and new not in given else name
