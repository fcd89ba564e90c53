"""``Answers``: the queries of the viewer; their results are the responses of the server and the content of an export.

Each response is a JSON-compatible mapping. ``KeyError`` means that the requested item does not exist,
``ConfigurationError`` that the query is invalid.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.version import __version__
from rstar2_env.view.following import FollowedRun, Follower
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.line_files import line_files_of
from rstar2_env.view.library import Library, ViewedRun, no_runs
from rstar2_env.view.queries import comparing, episodes, groups, health, problems, sampling, tokens
from rstar2_env.view.queries.events import event_details, marks_of
from rstar2_env.view.queries.figures import cached_figures
from rstar2_env.view.queries.filters import split_of
from rstar2_env.view.queries.findings import RunFindings, code_state
from rstar2_env.view.queries.result_cache import ResultCache
from rstar2_env.view.queries.run_facts import RunFacts
from rstar2_env.view.queries.sentences import sentences_of
from rstar2_env.view.queries.stages import stages_of

_CACHE_SIZE = 64
"""Maximum number of cached responses."""
_MOST_EVENTS = 2000
"""Maximum number of events in a response about a run."""
_READ_S = 3600.0
"""Maximum time to read all runs, in seconds."""

Params = Mapping[str, str]
JsonObject = dict[str, Any]


class Answers:
    """Answers the viewer's queries about the runs that a follower watches; thread-safe.

    Args:
        follower: Keeps the indexes of the runs up to date.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._library = follower.library
        self._cache = ResultCache(_CACHE_SIZE)
        self._found = RunFindings()

    def postpone_findings(self) -> None:
        """Delay the diagnosis of large runs for some seconds; call this at the beginning and the end of each query."""
        self._found.postpone()

    def close(self) -> None:
        """Stop the background computation of findings."""
        self._found.close()

    def runs(self) -> JsonObject:
        """Return the rows of all runs, the paths in which the viewer searched for runs, and the viewer's version."""
        rows = [self.row(run, self._follower.peek(run.name)) for run in self._followed_runs()]
        return {
            "runs": rows,
            "roots": [str(root) for root in self._library.roots],
            "exported": False,
            "version": __version__,
        }

    def _followed_runs(self) -> list[ViewedRun]:
        runs = []
        for run in self._library.runs:
            try:
                self._follower.peek(run.name)
            except KeyError:
                continue
            runs.append(run)
        return runs

    def row(self, run: ViewedRun, followed: FollowedRun) -> JsonObject:
        """Return one run's row for the list of runs."""
        read, size = followed.read
        searchable, known = followed.searchable
        return {
            "run": run.name,
            "name": run.path.stem if run.path.suffix == ".jsonl" else run.path.name,
            "kind": run.kind,
            "parent": run.parent,
            **followed.facts.row(),
            "episodes": followed.episodes,
            "indexing": None if followed.complete or read >= size else {"done": read, "total": size},
            "searchable": None if searchable >= known else {"done": searchable, "total": known},
            "notes": followed.notes[:50],
        }

    def run(self, name: str) -> JsonObject:
        """Return one run: its options, events, metrics, and the columns of its table of episodes."""
        run, followed, index = self._find(name)
        facts = followed.facts
        parts = facts.config.get("parts")
        return {
            **self.row(run, followed),
            "config": facts.config,
            "recipe_parts": {"name": facts.config.get("trainer", ""), **parts} if isinstance(parts, dict) else None,
            "events": [{**event, "details": event_details(event)} for event in facts.events[-_MOST_EVENTS:]],
            "summary": facts.summary,
            "verdict": facts.verdict,
            "health": self._health(run, facts, index),
            "sentences": self._sentences(run, facts, index),
            "stages": self._stages(run),
            "model_card": facts.card,
            "metric_names": sorted({name for figures in facts.metrics.values() for name in figures}),
            "episode_figures": cached_figures(index, "figures"),
            "columns": cached_figures(index, "columns and values by split"),
        }

    def _health(self, run: ViewedRun, facts: RunFacts, index: RunIndex) -> list[JsonObject]:
        state = facts.signature()

        def stored() -> list[JsonObject]:
            return index.cached(
                "health",
                lambda: health.health_of(run.kind, facts.config, facts.metrics),
                f"{code_state(health.__file__)} {state!r}",
            )

        return self._cache.find(("health", run.path, state), stored)

    def _sentences(self, run: ViewedRun, facts: RunFacts, index: RunIndex) -> list[JsonObject]:
        if run.kind != "training":
            return []
        key = ("sentences", index.file, index.version, facts.signature())
        return self._cache.find(key, lambda: sentences_of(index, facts.metrics))

    def _stages(self, run: ViewedRun) -> list[JsonObject]:
        if run.kind != "pipeline":
            return []
        runs = {
            stage.path.name: {"run": stage.name, "kind": stage.kind, **self._follower.peek(stage.name).facts.row()}
            for stage in self._library.runs
            if stage.parent == run.name
        }
        facts = self._follower.peek(run.name).facts
        return stages_of(facts.events, facts.config, str(facts.row()["state"]), runs)

    def findings(self, name: str, *, wait: bool = False) -> JsonObject:
        """Return the findings of ``rstar2 diagnose`` that are known for a run; see ``queries.findings``.

        The findings are stored in the run's index, so that the next viewer need not compute them again.

        Args:
            name: Name of the run.
            wait: Whether to wait until the findings for the run's present state are known.

        Raises:
            ConfigurationError: The run is a pipeline, which has no findings of its own.
        """
        run, followed, index = self._find(name)
        facts = followed.facts
        if run.kind == "pipeline":
            raise ConfigurationError(
                f"{name} is a pipeline, which has no findings of its own: request the findings of one of its stages."
            )
        running = facts.row()["state"] == "running"
        waiting: dict[str, Any] = {"wait_s": None} if wait else {}
        state = facts.signature()

        def stored(compute: Callable[[], JsonObject]) -> JsonObject:
            files = sorted((file.name, file.inode, file.size, file.mtime) for file in line_files_of(run.path))
            return index.cached(f"findings {name}", compute, f"{code_state()} {state!r} {files!r}")

        return self._found.find(run.path, name, state, running=running, stored=stored, **waiting)

    def metrics(self, name: str) -> JsonObject:
        """Return the metrics of a run at each step, and the events to mark on curves."""
        facts = self._find(name)[1].facts
        metrics = facts.metrics
        steps = list(metrics)
        names = sorted({name for figures in metrics.values() for name in figures})
        return {
            "steps": steps,
            "series": {name: [metrics[step].get(name) for step in steps] for name in names},
            "marks": marks_of(facts.valid_events),
        }

    def statuses(self, name: str, params: Params) -> JsonObject:
        """Return, for each step, the number of tool calls by status, and the number of episodes by end."""
        found: JsonObject = cached_figures(self._find(name)[2], f"by_step {split_of(params, 'train')}")
        return found

    def episodes(self, name: str, params: Params) -> JsonObject:
        """Return one page of a run's table of episodes."""
        _, followed, index = self._find(name)
        found = episodes.list_episodes(index, params)
        searched = not params.get("q") or followed.searchable[0] >= followed.searchable[1]
        return {**found, "partial": not (followed.complete or followed.read[0] >= followed.read[1]) or not searched}

    def aggregates(self, name: str, params: Params) -> JsonObject:
        """Return metrics of the episodes that match a filter, in total and by step."""
        return episodes.aggregate_episodes(self._find(name)[2], params)

    def place(self, name: str, key: str, params: Params) -> JsonObject:
        """Return the position of an episode in the filtered and sorted table of episodes."""
        return episodes.find_place(self._find(name)[2], params, key)

    def episode(self, name: str, key: str) -> JsonObject:
        """Return the full record of one episode."""
        return episodes.find_episode(self._find(name)[2], key)

    def tokens(self, name: str, key: str) -> JsonObject:
        """Return a training episode's tokens: text, mask, log-probability, advantage and importance ratio of each."""
        _, followed, index = self._find(name)
        return tokens.tokens_of(index, followed.facts.config, key)

    def groups(self, name: str, params: Params) -> JsonObject:
        """Return one page of a run's list of groups (episodes of one problem that were compared with each other)."""
        return groups.list_groups(self._find(name)[2], params)

    def group(self, name: str, step: str, group: str, params: Params) -> JsonObject:
        """Return one group with its episodes."""
        _, followed, index = self._find(name)
        if not (step.isdecimal() and group.removeprefix("-").isdecimal() and len(step + group) < 24):
            raise ConfigurationError(f"The step and the number of a group must be whole numbers, not {step}/{group}.")
        found = groups.find_group(index, int(step), int(group), params)
        part, options = sampling.part_of(followed.facts.config, "selector")
        selector = {"name": part, "options": options, "summary": ""} if part else None
        rollout = followed.facts.config.get("rollout")
        keep = rollout.get("group_size") if isinstance(rollout, dict) else None
        return {**found, "selector": selector, "keep": keep}

    def sampler(self, name: str) -> JsonObject:
        """Return the sampler of a run: its options, its draws at each step, and its state in checkpoints."""
        _, followed, index = self._find(name)
        key = (index.file, index.version, followed.facts.signature())
        return self._cache.find(key, lambda: sampling.sampler_of(index, followed.facts))

    def problems(self, name: str, params: Params) -> JsonObject:
        """Return one page of a run's list of problems."""
        return problems.list_problems(self._find(name)[2], params)

    def problem(self, name: str, problem: str, params: Params) -> JsonObject:
        """Return one problem, with its success rates and newest episodes."""
        return problems.find_problem(self._find(name)[2], problem, params)

    def compare(self, params: Params) -> JsonObject:
        """Compare the success rates of two runs, problem by problem."""
        (run_a, _, a), (run_b, _, b) = (self._find(_run_parameter(params, name)) for name in "ab")
        of_training = "evaluation" not in (run_a.kind, run_b.kind)  # an evaluation has no steps
        return comparing.compare_runs(a, b, params, of_training=of_training)

    def difference(self, params: Params) -> JsonObject:
        """Return the options that differ between two runs."""
        a, b = (self._find(_run_parameter(params, name))[1].facts.config for name in "ab")
        return comparing.differing_options(a, b)

    def facts(self, name: str) -> RunFacts:
        """Return an object that reads the small files of a run: options, metrics and events."""
        return self._find(name)[1].facts

    def index(self, name: str) -> RunIndex:
        """Return the index of a run's episodes."""
        return self._find(name)[2]

    def _find(self, name: str) -> tuple[ViewedRun, FollowedRun, RunIndex]:
        return self._library.run(name), self._follower.followed(name), self._library.index(name)


@contextmanager
def read_runs(
    roots: Iterable[str | os.PathLike[str]],
    cache: Path | None = None,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
) -> Iterator[Answers]:
    """Read all runs below the given paths, for at most ``_READ_S`` seconds; then yield ``Answers`` to query them.

    Args:
        roots: Run folders, folders that contain runs, and single files of evaluations.
        cache: Folder of indexes [default: in the user's cache folder].
        on_progress: Progress callback, as for ``Follower.read_all``.

    Raises:
        ConfigurationError: A path is not a run, there are no runs, or reading them takes longer than an hour.
    """
    with closing(Library(roots, cache)) as library:
        if not library.runs:
            raise ConfigurationError(no_runs(library.roots))
        follower = Follower(library)
        if not follower.read_all(_READ_S, on_progress):
            raise ConfigurationError(
                f"The runs were not read completely within {_READ_S:g} s. Repeat the command (if the cache folder can "
                "be written, it continues where it stopped), or give fewer runs."
            )
        with closing(Answers(follower)) as answers:
            yield answers


def _run_parameter(params: Params, name: str) -> str:
    run = params.get(name)
    if not run:
        raise ConfigurationError(
            f"The parameter {name} is missing: a comparison needs the names of both runs, as in a=RUN&b=RUN."
        )
    return run
