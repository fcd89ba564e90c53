"""Compute digests of a stage's inputs and of files that its options name; describe a stage's changes between runs.

Not covered: reading the content (``digests``), and running a stage again after a change (``run``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rstar2_env.problems.spec import located

from .base import NamesSources, Stage
from .digests import Digests, differences
from .plan import CONFIG, Made, ResolvedInput
from .state import StageState

_DIGESTS = ("inputs", "contents")
"""Keys of a stage's record whose values are digests; ``changes`` describes a change of a digest in words."""


def content_of(given: ResolvedInput, states: Mapping[str, StageState], digests: Digests) -> str | None:
    """Return the digest of an input; ``None`` if it is an output of a stage that has not finished.

    Args:
        given: The input: a path, a name, or an output of another step.
        states: The states of the started stages.
        digests: Computes digests of files.
    """
    if given.step:
        state = states.get(given.step)
        if not state or not state.ended:
            return None
        # If no stage used this output when its stage finished, no digest was recorded: use the present content.
        return state.outputs.get(given.output) or digests.of(Path(given.text), given.kind)
    if given.kind == CONFIG:
        return "options"
    return str(located(given.text, lambda name: digests.of(Path(name), given.kind) if _exists(name) else None))


def contents_of(stage: Stage, find: Callable[[str], Path | None], digests: Digests) -> dict[str, str]:
    """Return, by file name, the digest of each file that a stage's options name in addition to the stage's inputs.

    Args:
        stage: The stage whose options name the files.
        find: Returns the path of a file name; ``None`` if the file does not exist.
        digests: Computes digests of files.
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
    """Describe the changes in a step's options and inputs since its last run.

    Args:
        made: The step, with its stage object and its resolved inputs.
        before: The recorded options and inputs of the step's last run.
        after: The step's present options and inputs, in the same form.
    """
    inputs = before.get("inputs", {})
    for option, given in made.given.items():
        if inputs.get(option) != after["inputs"].get(option):
            yield f"its {option} changed ({', '.join(map(str, given))})"
    contents, found = before.get("contents", {}), after.get("contents", {})
    for name in {**contents, **found}:
        if contents.get(name) != found.get(name):
            yield f"the content of {name} changed"
    was, now = ({name: one[name] for name in one if name not in _DIGESTS} for one in (before, after))
    yield from differences(was, now)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # the text is too long for a file name
        return False
