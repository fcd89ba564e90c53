"""The state of the stages in a pipeline's folder: which have started or finished, and with which options and inputs.

The state is read from the folder's append-only events; docs/run-folder.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

BEGAN, ENDED, TAKEN, ROUNDS_ENDED, REPLACED = (
    "stage_began",
    "stage_ended",
    "stage_taken",
    "rounds_ended",
    "stage_replaced",
)
STOPPED = ("interrupted", "failed")
"""Events that end an unfinished run of the pipeline; they name the stage that ran, and record how long it ran."""


@dataclass(slots=True)
class StageState:
    """The recorded state of a stage.

    Attributes:
        fingerprint: Fingerprint of its options and inputs when it started; empty if it has not started.
        made_from: The options and inputs from which the fingerprint was computed.
        ended: Whether the stage finished.
        outputs: Digests of its outputs, by name, when it finished or when it was last accepted unchanged.
        figures: The measurements that the stage returned, by name.
        seconds: Total seconds of the stage's runs; a run counts only if its end was recorded.
        running_since: Time at which its last run started, in the format of events; empty if the end of that run was
            recorded.
    """

    fingerprint: str = ""
    made_from: Mapping[str, Any] = field(default_factory=dict)
    ended: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float | None] = field(default_factory=dict)
    seconds: float = 0.0
    running_since: str = ""

    def seconds_of_kill(self, folder: Path) -> float:
        """Return the seconds from the start of a killed run to its last write into the folder; 0 if no run was killed.

        Args:
            folder: The stage's folder.
        """
        if not self.running_since:
            return 0.0
        began = datetime.fromisoformat(self.running_since).timestamp()
        last = max((path.lstat().st_mtime for path in folder.rglob("*")), default=began)
        return round(max(0.0, last - began), 3)


def states_of(events: Iterable[Mapping[str, Any]]) -> dict[str, StageState]:
    """Compute the state of every stage, by its id, from the events in a pipeline's folder."""
    found: dict[str, StageState] = {}
    for event in events:
        what = event.get("event")
        if what == BEGAN:
            before = found.get(event["stage"])
            again = before is not None and before.fingerprint == event["fingerprint"] and not before.ended
            if not again:
                found[event["stage"]] = StageState(event["fingerprint"], event.get("made_from", {}))
            _count(found, event, running_since=event.get("time", ""))
        elif what == ENDED:
            state = found.setdefault(event["stage"], StageState())
            state.fingerprint, state.ended = event["fingerprint"], True
            state.outputs, state.figures = event["outputs"], event.get("figures", {})
            _count(found, event)
        elif what in STOPPED:
            _count(found, event)
        elif what == TAKEN and (state_there := found.get(event["stage"])):
            state_there.fingerprint, state_there.made_from = event["fingerprint"], event.get("made_from", {})
            state_there.outputs = event.get("outputs", state_there.outputs)
        elif what == REPLACED:
            found.pop(event["stage"], None)
    return found


def _count(found: Mapping[str, StageState], event: Mapping[str, Any], *, running_since: str = "") -> None:
    """Add the seconds of an event to the state of its stage in ``found``, and set ``running_since`` of that state."""
    if (state := found.get(event.get("stage", ""))) is not None:
        state.seconds += event.get("seconds", 0.0)
        state.running_since = running_since
