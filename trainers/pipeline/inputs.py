"""What a step is made from: the content of its inputs and of files that its options name, and what differs in it.

Not covered: how content is read (``digests``), and what follows from a difference (``run``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rstar2_env.problems.spec import located

from .base import NamesSources, Stage
from .digests import Digests, differences
from .plan import CONFIG, Given, Made
from .state import StageState

_TOLD = ("inputs", "contents")
"""Keys of what a stage is made from whose values are digests, which say nothing to a reader."""


def content_of(given: Given, states: Mapping[str, StageState], digests: Digests) -> str | None:
    """What counts of an input; ``None`` where it is of a stage that has not ended.

    Args:
        given: The input.
        states: Of the stages that began.
        digests: Reads files.
    """
    if given.step:
        state = states.get(given.step)
        if not state or not state.ended:
            return None
        # What no stage took when it ended is taken as it is.
        return state.outputs.get(given.output) or digests.of(Path(given.text), given.kind)
    if given.kind == CONFIG:
        return "options"
    return str(located(given.text, lambda name: digests.of(Path(name), given.kind) if _is_there(name) else None))


def contents_of(stage: Stage, find: Callable[[str], Path | None], digests: Digests) -> dict[str, str]:
    """The digest of each file that the options of a stage name beside its inputs, by its name there.

    Args:
        stage: The stage.
        find: Where a file of that name is.
        digests: Reads files.
    """
    found: dict[str, str] = {}

    def read(name: str) -> str | None:
        path = find(name)
        digest = None if path is None else digests.of(path, "problems")
        if digest is not None:
            found[name] = digest
        return digest

    for source in stage.named_sources() if isinstance(stage, NamesSources) else ():
        located(source, read)
    return found


def changes(made: Made, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What is different in what a stage is made from, in words.

    Args:
        made: The stage.
        before: What it was made from.
        after: What it would be made from.
    """
    inputs = before.get("inputs", {})
    for option, given in made.given.items():
        if inputs.get(option) != after["inputs"].get(option):
            yield f"its {option} changed ({', '.join(map(str, given))})"
    contents, found = before.get("contents", {}), after.get("contents", {})
    for name in {**contents, **found}:
        if contents.get(name) != found.get(name):
            yield f"the content of {name} changed"
    was, now = ({name: one[name] for name in one if name not in _TOLD} for one in (before, after))
    yield from differences(was, now)


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # no name of a file: a longer text
        return False
