"""The stages of a pipeline: their states, durations and results, from the events in the pipeline's folder.

The list includes stages without a run folder (data, traces, filters). Not covered: the runs of stages, which are
queried like any other run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rstar2_env.view.index.episode_columns import as_float

_SHARED_STATES = frozenset({"running", "stopped"})
"""States of a pipeline that are also shown as the state of the pipeline's unfinished stage."""


def stages_of(
    events: Iterable[Mapping[str, Any]],
    config: Mapping[str, Any],
    state: str,
    runs: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return the stages of a pipeline in the order of their start, and then the stages that have not started.

    Args:
        events: Events of the pipeline.
        config: Options of the pipeline, with the planned ``stages``.
        state: State of the pipeline.
        runs: For each stage with a run folder, by the stage's name: ``run``, ``state``, ``error``, ``figures``.

    Returns:
        For each stage: ``name``, ``kind``, ``state`` (``finished``, ``running``, ``waiting``, …), ``seconds`` over all
        attempts or ``None``, ``run`` or ``None``, ``figures`` by name, ``error`` or ``None``, and the times
        ``started`` and ``updated`` (of the latest beginning or end), ``None`` before the start.
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
        if name in found and (took := as_float(event.get("seconds"))) is not None:
            found[name]["seconds"] = (found[name]["seconds"] or 0) + took
    for stage in found.values():
        if not stage["state"]:
            current = stage is last
            stage["state"] = state if current and (state in _SHARED_STATES or state == "failed") else "interrupted"
            stage["error"] = error if current and state == "failed" else None
    listed = [*found.values(), *({"name": name} for name in planned if not _has_started(name, found))]
    return [_stage_record(stage, planned, runs) for stage in listed]


def _stage_record(
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
    """Yield the name and kind of each planned stage; the name of a repeated stage lacks the number of the round."""
    for name, options in stages.items() if isinstance(stages, dict) else ():
        if isinstance(options, dict) and "rounds" in options:
            yield from _planned(options.get("stages"))
        else:
            yield str(name), str(options.get("kind", "")) if isinstance(options, dict) else ""


def _has_started(name: str, found: Mapping[str, Any]) -> bool:
    """Whether a planned stage is in ``found``, as ``NAME`` or, for round 2 of a repeated stage, as ``NAME-2``."""
    parts = (started.rpartition("-") for started in found)
    return name in found or any(base == name and number.isdecimal() for base, _, number in parts)
