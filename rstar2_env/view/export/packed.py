"""The answers that an export holds, by the addresses under which the page asks for them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import combinations
from typing import Any
from urllib.parse import quote

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers
from rstar2_env.view.export.chosen import choose
from rstar2_env.view.plain_json import dumped
from rstar2_env.view.queries.rows import rows_of

MOST_RUNS = 12
MOST_BYTES = 96 << 20
"""Bytes of JSON of all episodes together, before compression."""
_MOST_PROBLEMS = 1000
_MOST_PAIRS = 15
_MOST_TOKENS = 50
_TAKEN_BACK = (OSError, EOFError, KeyError)
"""Errors of answers about something that a run which goes on took back, or replaced, since it was read."""


class _Room:
    """What may still be added."""

    def __init__(self) -> None:
        self.left = MOST_BYTES

    def takes(self, value: Any) -> bool:
        size = len(dumped(value))
        if size > self.left:
            return False
        self.left -= size
        return True


def pack(answers: Answers, *, episodes: int, asked: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What an export holds.

    Paths of this machine are left out of the list of runs; a run's options are told as they are.

    Args:
        answers: About the runs, which have been read to their ends.
        episodes: Episodes of each run, at most.
        asked: A filter of the episodes, as of their table.
    """
    told = answers.runs()
    names = [row["run"] for row in told["runs"]][:MOST_RUNS]
    notes = []
    if len(names) < len(told["runs"]):
        notes.append(f"{len(names)} of {len(told['runs'])} runs: a page holds {MOST_RUNS}; name those to export")
    rows = [_without_path(row) for row in told["runs"] if row["run"] in names]
    responses: dict[str, Any] = {"api/runs": {**told, "runs": rows, "roots": [], "exported": True}}
    room = _Room()
    for name in names:
        note = _add_run(responses, answers, name, episodes, asked or {}, room)
        if note:
            notes.append(f"{name}: {note}")
    for a, b in list(combinations(names, 2))[:_MOST_PAIRS]:
        responses[f"api/difference?a={a}&b={b}"] = answers.difference({"a": a, "b": b})
        for split in ("eval", "train"):
            query = {"a": a, "b": b, "split": split, "limit": str(_MOST_PROBLEMS)}
            responses[f"api/compare?a={a}&b={b}&split={split}"] = answers.compare(query)
    made = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    note = "; ".join(notes) + "." if notes else ""
    return {"version": 1, "made": made, "note": note, "responses": responses}


def _without_path(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "path": row["name"]}


def _add_run(
    responses: dict[str, Any], answers: Answers, name: str, most: int, asked: Mapping[str, str], room: _Room
) -> str:
    """Add what there is about a run; returns what was left out."""
    at = f"api/runs/{name}"
    responses[at] = _without_path(answers.run(name))
    responses[f"{at}/metrics"] = answers.metrics(name)
    responses[f"{at}/sampler"] = answers.sampler(name)
    for split in ("train", "eval"):
        responses[f"{at}/statuses?split={split}"] = answers.statuses(name, {"split": split})
    index = answers.index(name)
    chosen = choose(index, most, asked)
    with index.reading() as db:
        rows = rows_of(db, chosen.ids)
    held: list[dict[str, Any]] = []
    groups: dict[tuple[Any, ...], dict[str, Any] | None] = {}
    tokens = 0
    for row in rows:
        key = row["key"]
        try:
            episode = answers.episode(name, key)
        except _TAKEN_BACK:
            continue
        try:
            if not room.takes(episode):
                break
        except ConfigurationError:
            continue  # nested too deeply
        held.append(row)
        responses[f"{at}/episodes/{key}"] = episode
        if episode["has_tokens"] and tokens < _MOST_TOKENS:
            with contextlib.suppress(*_TAKEN_BACK):
                responses[f"{at}/episodes/{key}/tokens"] = answers.tokens(name, key)
                tokens += 1
        place = (row["split"], row["step"], row["round"], row["group"])
        if place not in groups:
            groups[place] = _add_group(responses, answers, name, place)
    keys = {row["key"] for row in held}
    responses[f"{at}/episodes"] = {"total": len(held), "rows": held}
    shown = [group for group in groups.values() if group]
    responses[f"{at}/groups"] = {"total": len(shown), "rows": shown}
    problems = answers.problems(name, {"limit": str(_MOST_PROBLEMS)})
    responses[f"{at}/problems"] = problems
    played = {row["problem_id"] for row in held}
    for problem in problems["rows"]:
        if problem["problem_id"] in played:
            try:
                found = answers.problem(name, problem["problem_id"], {})
            except _TAKEN_BACK:
                continue
            found["episodes"] = [row for row in found["episodes"] if row["key"] in keys]
            responses[f"{at}/problems/{quote(problem['problem_id'], safe='')}"] = found
    why = [chosen.why] if chosen.why else []
    if len(held) < len(rows):
        why.append(f"{len(held):,} of those, since a page holds {MOST_BYTES >> 20} MiB of episodes")
    if problems["total"] > len(problems["rows"]):
        why.append(f"the first {len(problems['rows']):,} of {problems['total']:,} problems")
    if any(row["split"] == "train" for row in held) and tokens == _MOST_TOKENS:
        why.append(f"the tokens of {tokens} episodes")
    return ", ".join(why)


def _add_group(responses: dict[str, Any], answers: Answers, name: str, place: tuple[Any, ...]) -> dict[str, Any] | None:
    split, step, round_, group = place
    try:
        found = answers.group(name, str(step), str(group), {"split": split, "round": str(round_)})
    except (KeyError, ConfigurationError):
        return None
    address = f"api/runs/{name}/groups/{step}/{group}"
    # The page asks for a group of training by its step and number alone.
    if split == "train":
        responses.setdefault(address, found)
    responses[f"{address}?split={split}&round={round_}"] = found
    beside = ("neighbours", "quotas", "episodes", "selector", "keep")
    return {key: value for key, value in found.items() if key not in beside}
