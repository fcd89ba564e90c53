"""Collects the responses that an export contains, by the addresses that the page requests."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from typing import Any
from urllib.parse import quote

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers
from rstar2_env.view.export.episode_choice import choose_episodes
from rstar2_env.view.plain_json import to_json
from rstar2_env.view.queries.rows import rows_of

MOST_RUNS = 12
MOST_BYTES = 96 << 20
"""Maximum total size of the episodes as JSON, in bytes, before compression."""
_MOST_PROBLEMS = 1000
_MOST_PAIRS = 15
_MOST_TOKENS = 50
_REPLACED = (OSError, EOFError, KeyError)
"""Errors that a query raises if the run in progress removed or replaced the queried data."""


def pack(answers: Answers, *, episodes: int, params: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the content of an export as JSON-compatible values.

    Paths of this machine are removed from the list of runs; the options of runs are included unchanged.

    Args:
        answers: Queries over runs that were read completely.
        episodes: Maximum number of episodes per run.
        params: Filters of the episodes (``queries.filters``).
    """
    return _Packer(answers, episodes, params or {}).pack()


def _without_path(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "path": row["name"]}


@dataclass
class _Packer:
    """Collects the responses of an export.

    Attributes:
        answers: Queries over the runs.
        most: Maximum number of episodes per run.
        params: Filter of the episodes.
        responses: The responses so far, by address.
        bytes_left: Number of bytes of episodes that may still be added.
    """

    answers: Answers
    most: int
    params: Mapping[str, str]
    responses: dict[str, Any] = field(default_factory=dict)
    bytes_left: int = MOST_BYTES

    def pack(self) -> dict[str, Any]:
        """Return the content of the export as JSON-compatible values."""
        found = self.answers.runs()
        names = [row["run"] for row in found["runs"]][:MOST_RUNS]
        notes = []
        if len(names) < len(found["runs"]):
            notes.append(
                f"{len(names)} of {len(found['runs'])} runs (a page has at most {MOST_RUNS}; name the runs to export)"
            )
        rows = [_without_path(row) for row in found["runs"] if row["run"] in names]
        self.responses["api/runs"] = {**found, "runs": rows, "roots": [], "exported": True}
        notes += [f"{name}: {note}" for name in names if (note := self._add_run(name))]
        for a, b in list(combinations(names, 2))[:_MOST_PAIRS]:
            self.responses[f"api/difference?a={a}&b={b}"] = self.answers.difference({"a": a, "b": b})
            for split in ("eval", "train"):
                self._add_comparison({"a": a, "b": b, "split": split})
        made = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        note = "; ".join(notes) + "." if notes else ""
        return {"version": 1, "made": made, "note": note, "responses": self.responses}

    def _add_comparison(self, query: Mapping[str, str]) -> None:
        words = "&".join(f"{name}={value}" for name, value in query.items())
        self.responses[f"api/compare?{words}"] = self.answers.compare({**query, "limit": str(_MOST_PROBLEMS)})

    def _add_run(self, name: str) -> str:
        """Add the responses about a run; return a note on omitted data, empty if no data was omitted."""
        at, answers, responses = f"api/runs/{name}", self.answers, self.responses
        responses[at] = _without_path(answers.run(name))
        responses[f"{at}/metrics"] = answers.metrics(name)
        if responses[at]["kind"] != "pipeline":
            responses[f"{at}/findings"] = answers.findings(name, wait=True)
        responses[f"{at}/sampler"] = answers.sampler(name)
        for split in ("train", "eval"):
            responses[f"{at}/statuses?split={split}"] = statuses = answers.statuses(name, {"split": split})
            if len(steps := statuses["steps"]) > 1:
                ends = {"a_step": f"{steps[0]}", "b_step": f"{steps[-1]}"}
                self._add_comparison({"a": name, "b": name, **ends, "split": split})
        index = answers.index(name)
        ids, omitted = choose_episodes(index, self.most, self.params)
        with index.reading() as db:
            rows = rows_of(db, ids)
        rows.sort(key=lambda row: (row["split"] != "train", -row["step"]))  # the order of the lists: newest step first
        held: list[dict[str, Any]] = []
        groups: dict[tuple[Any, ...], dict[str, Any] | None] = {}
        tokens = 0
        for row in rows:
            key = row["key"]
            try:
                episode = answers.episode(name, key)
                size = len(to_json(episode))
            except (*_REPLACED, ConfigurationError):  # ConfigurationError: nested too deeply
                continue
            if size > self.bytes_left:
                break
            self.bytes_left -= size
            held.append(row)
            responses[f"{at}/episodes/{key}"] = episode
            if episode["has_tokens"] and tokens < _MOST_TOKENS:
                with contextlib.suppress(*_REPLACED):
                    responses[f"{at}/episodes/{key}/tokens"] = answers.tokens(name, key)
                    tokens += 1
            place = (row["split"], row["step"], row["round"], row["group"])
            if place not in groups:
                groups[place] = self._add_group(name, place)
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
                except _REPLACED:
                    continue
                found["episodes"] = [row for row in found["episodes"] if row["key"] in keys]
                responses[f"{at}/problems/{quote(problem['problem_id'], safe='')}"] = found
        included = [omitted] if omitted else []
        if len(held) < len(rows):
            included.append(f"{len(held):,} of these, because a page has at most {MOST_BYTES >> 20} MiB of episodes")
        if problems["total"] > len(problems["rows"]):
            included.append(f"the first {len(problems['rows']):,} of {problems['total']:,} problems")
        if any(row["split"] == "train" for row in held) and tokens == _MOST_TOKENS:
            included.append(f"the tokens of {tokens} episodes")
        return ", ".join(included)

    def _add_group(self, name: str, place: tuple[Any, ...]) -> dict[str, Any] | None:
        split, step, round_, group = place
        try:
            found = self.answers.group(name, str(step), str(group), {"split": split, "round": str(round_)})
        except (KeyError, ConfigurationError):
            return None
        address = f"api/runs/{name}/groups/{step}/{group}"
        # The page requests a training group by step and number only.
        if split == "train":
            self.responses.setdefault(address, found)
        self.responses[f"{address}?split={split}&round={round_}"] = found
        details = ("neighbours", "quotas", "episodes", "selector", "keep")
        return {key: value for key, value in found.items() if key not in details}
