"""The stages of a pipeline: which ended, which runs, which wait, what they measured, by the events of its folder.

Every stage is in the list, also those that are no run of their own (data, traces, filters). Not covered: the runs of
stages, which are answered for like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rstar2_env.view.index.facts import real

_GOES_ON = frozenset({"running", "stopped"})
"""States of a pipeline in which a stage that has not ended has the same."""


def stages_of(
    events: Iterable[Mapping[str, Any]],
    config: Mapping[str, Any],
    state: str,
    runs: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The stages in the order in which they began; then those that have not begun.

    Args:
        events: The events of the pipeline's folder.
        config: Its options, with the ``stages`` that are planned.
        state: State of the pipeline.
        runs: Of stages that are runs, by the name of their folder: ``run``, ``state``, ``error``, ``figures``.

    Returns:
        Of each: ``name``, ``kind``, ``state`` (``finished``, ``running``, ``waiting``, …), ``seconds`` over all its
        runs or ``None``, ``run`` or ``None``, ``figures`` by name, ``error`` or ``None``, ``started`` and ``updated``.
    """
    planned = dict(_planned(config.get("stages")))
    found: dict[str, dict[str, Any]] = {}
    last: dict[str, Any] = {}
    error = None
    for event in events:
        name = str(event.get("stage", ""))
        what = event.get("event")
        if what == "stage_began" and name:
            before = found.get(name, {"seconds": None, "started": event.get("time")})
            last = {**before, "name": name, "state": "", "figures": {}, "updated": event.get("time")}
            found[name] = last
        elif what == "stage_ended" and name in found:
            figures = event.get("figures")
            found[name] |= {"state": "finished", "updated": event.get("time")}
            found[name]["figures"] = figures if isinstance(figures, dict) else {}
        elif what == "stage_replaced":
            found.pop(name, None)
        elif what == "failed":
            error = str(event.get("error", ""))
        if name in found and (took := real(event.get("seconds"))) is not None:
            found[name]["seconds"] = (found[name]["seconds"] or 0) + took
    for stage in found.values():
        if not stage["state"]:
            present = stage is last
            stage["state"] = state if present and (state in _GOES_ON or state == "failed") else "interrupted"
            stage["error"] = error if present and state == "failed" else None
    listed = [*found.values(), *({"name": name} for name in planned if not _begun(name, found))]
    return [_told(stage, planned, runs) for stage in listed]


def _told(
    stage: Mapping[str, Any], planned: Mapping[str, str], runs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    name = str(stage["name"])
    own = runs.get(name, {})
    return {
        "name": name,
        "kind": planned.get(name) or planned.get(name.rpartition("-")[0]) or own.get("kind", ""),
        "state": stage.get("state", "waiting"),
        "seconds": stage.get("seconds"),
        "run": own.get("run"),
        "figures": stage.get("figures") or own.get("figures") or {},
        "error": stage.get("error") or own.get("error"),
        "started": stage.get("started"),
        "updated": stage.get("updated"),
    }


def _planned(stages: Any) -> Iterable[tuple[str, str]]:
    """Names and kinds of stages; those of rounds by their names without the round's number."""
    for name, options in stages.items() if isinstance(stages, dict) else ():
        if isinstance(options, dict) and "rounds" in options:
            yield from _planned(options.get("stages"))
        else:
            yield str(name), str(options.get("kind", "")) if isinstance(options, dict) else ""


def _begun(name: str, found: Mapping[str, Any]) -> bool:
    """Whether a planned stage began, in a round or outside of one."""
    return name in found or any(one.rpartition("-")[0] == name and one.rpartition("-")[2].isdecimal() for one in found)
