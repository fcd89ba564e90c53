"""Everything that the viewer answers, by what is asked for: what the server says, without HTTP, and an export holds.

Each answer is a mapping that JSON can hold. ``KeyError`` means that what was asked for is not there,
``ConfigurationError`` that the question is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.version import __version__
from rstar2_env.view.following import Followed, Follower
from rstar2_env.view.index import RunIndex
from rstar2_env.view.library import ViewedRun
from rstar2_env.view.queries import comparing, episodes, figures, groups, problems, sampling, tokens
from rstar2_env.view.queries.kept import Kept
from rstar2_env.view.queries.run_facts import RunFacts
from rstar2_env.view.queries.stages import stages_of

_KEPT = 64
"""Answers that are kept until their run changes."""
_MOST_EVENTS = 2000

Asked = Mapping[str, str]
Answer = dict[str, Any]


class Answers:
    """Answers about the runs that a follower follows; any thread.

    Args:
        follower: The follower.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._library = follower.library
        self._kept = Kept(_KEPT)

    def runs(self) -> Answer:
        """Every run, with how far it is."""
        rows = [self.row(run, self._follower.peek(run.name)) for run in self._known()]
        return {
            "runs": rows,
            "roots": [str(root) for root in self._library.roots],
            "exported": False,
            "version": __version__,
        }

    def _known(self) -> list[ViewedRun]:
        known = []
        for run in self._library.runs:
            try:
                self._follower.peek(run.name)
            except KeyError:
                continue
            known.append(run)
        return known

    def row(self, run: ViewedRun, followed: Followed) -> Answer:
        """What a list of runs shows of one."""
        read, there = followed.read
        searchable, known = followed.searchable
        return {
            "run": run.name,
            "name": run.path.stem if run.path.suffix == ".jsonl" else run.path.name,
            "kind": run.kind,
            "parent": run.parent,
            **followed.facts.row(),
            "episodes": followed.episodes,
            "indexing": None if followed.complete or read >= there else {"done": read, "total": there},
            "searchable": None if searchable >= known else {"done": searchable, "total": known},
            "notes": followed.notes[:50],
        }

    def run(self, name: str) -> Answer:
        """One run, with its options, events, figures and columns."""
        run, followed, index = self._of(name)
        facts = followed.facts
        parts = facts.config.get("parts")
        return {
            **self.row(run, followed),
            "config": facts.config,
            "recipe_parts": {"name": facts.config.get("trainer", ""), **parts} if isinstance(parts, dict) else None,
            "events": facts.events[-_MOST_EVENTS:],
            "summary": facts.summary,
            "stages": self._stages(run),
            "model_card": facts.card,
            "metric_names": sorted({name for one in facts.metrics.values() for name in one}),
            "episode_figures": figures.kept_of_splits(index),
            "columns": figures.kept_columns(index),
        }

    def _stages(self, run: ViewedRun) -> list[Answer]:
        if run.kind != "pipeline":
            return []
        runs = {
            stage.path.name: {"run": stage.name, "kind": stage.kind, **self._follower.peek(stage.name).facts.row()}
            for stage in self._library.runs
            if stage.parent == run.name
        }
        facts = self._follower.peek(run.name).facts
        return stages_of(facts.events, facts.config, str(facts.row()["state"]), runs)

    def metrics(self, name: str) -> Answer:
        """The figures of each step."""
        metrics = self._of(name)[1].facts.metrics
        steps = list(metrics)
        names = sorted({name for one in metrics.values() for name in one})
        return {
            "steps": steps,
            "series": {name: [metrics[step].get(name) for step in steps] for name in names},
        }

    def statuses(self, name: str, asked: Asked) -> Answer:
        """How the calls and the episodes of each step went."""
        split = split_of(asked, "train")
        index = self._of(name)[2]
        return figures.kept_by_step(index, split)

    def episodes(self, name: str, asked: Asked) -> Answer:
        """A page of the table of episodes."""
        _, followed, index = self._of(name)
        found = episodes.list_episodes(index, asked)
        searched = not asked.get("q") or followed.searchable[0] >= followed.searchable[1]
        return {**found, "partial": not (followed.complete or followed.read[0] >= followed.read[1]) or not searched}

    def place(self, name: str, key: str, asked: Asked) -> Answer:
        """Where an episode stands in the table of episodes."""
        return episodes.find_place(self._of(name)[2], asked, key)

    def episode(self, name: str, key: str) -> Answer:
        """One episode."""
        return episodes.find_episode(self._of(name)[2], key)

    def tokens(self, name: str, key: str) -> Answer:
        """The tokens of an episode that trained."""
        _, followed, index = self._of(name)
        return tokens.tokens_of(index, followed.facts.config, key)

    def groups(self, name: str, asked: Asked) -> Answer:
        """A page of the groups."""
        return groups.list_groups(self._of(name)[2], asked)

    def group(self, name: str, step: str, group: str, asked: Asked) -> Answer:
        """One group."""
        _, followed, index = self._of(name)
        if not (step.isdecimal() and group.removeprefix("-").isdecimal() and len(step + group) < 24):
            raise ConfigurationError("A group is named by the numbers of its step and of itself.")
        found = groups.find_group(index, int(step), int(group), asked)
        part, options = sampling.part_of(followed.facts.config, "selector")
        selector = {"name": part, "options": options, "summary": ""} if part else None
        rollout = followed.facts.config.get("rollout")
        keep = rollout.get("group_size") if isinstance(rollout, dict) else None
        return {**found, "selector": selector, "keep": keep}

    def sampler(self, name: str) -> Answer:
        """What the sampler made of the run."""
        _, followed, index = self._of(name)
        version = followed.facts.signature()
        found: Answer = self._cached(index, ("sampler", version), lambda: sampling.sampler_of(index, followed.facts))
        return found

    def problems(self, name: str, asked: Asked) -> Answer:
        """A page of the problems."""
        return problems.list_problems(self._of(name)[2], asked)

    def problem(self, name: str, problem: str, asked: Asked) -> Answer:
        """One problem."""
        return problems.find_problem(self._of(name)[2], problem, asked)

    def compare(self, asked: Asked) -> Answer:
        """Two runs problem by problem."""
        a, b = (self._of(_named(asked, name))[2] for name in "ab")
        return comparing.compare_runs(a, b, asked)

    def difference(self, asked: Asked) -> Answer:
        """The options in which two runs differ."""
        a, b = (self._of(_named(asked, name))[1].facts.config for name in "ab")
        return comparing.differing_options(a, b)

    def facts(self, name: str) -> RunFacts:
        """The small files of a run."""
        return self._of(name)[1].facts

    def index(self, name: str) -> RunIndex:
        """The index of a run."""
        return self._of(name)[2]

    def _of(self, name: str) -> tuple[ViewedRun, Followed, RunIndex]:
        return self._library.run(name), self._follower.followed(name), self._library.index(name)

    def _cached(self, index: RunIndex, what: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        return self._kept.find((index.file, index.version, *what), make)


def _named(asked: Asked, name: str) -> str:
    found = asked.get(name)
    if not found:
        raise ConfigurationError("Name the two runs: a=RUN&b=RUN.")
    return found


def split_of(asked: Asked, default: str) -> str:
    """The split of an address.

    Raises:
        ConfigurationError: There is no such split.
    """
    split = asked.get("split") or default
    if split not in ("train", "eval"):
        raise ConfigurationError(f"split must be train or eval, not {split[:40]!r}.")
    return split
