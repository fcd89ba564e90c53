"""Checks of level 3: whether the verifier repeats its verdicts in another thread, and in a process with other settings.

The other process is a fresh interpreter (``again``) that makes the environment and plays the same turns. Not covered:
another machine or another version of a package.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rstar2_env.evaluation.validation.bench import Bench, BenchEpisode, replayed
from rstar2_env.evaluation.validation.check import CheckFinding, NotApplicableError, check
from rstar2_env.evaluation.validation.players import PLAYERS, need_oracle

_MODULE = "rstar2_env.evaluation.validation.again"
_PATIENCE_S = 900
_EACH = 4
_SURROUNDING = {"PYTHONHASHSEED": "4711", "TZ": "Pacific/Apia", "LC_ALL": "C", "LANG": "C", "COLUMNS": "40"}


class UntriedError(Exception):
    """The environment cannot be made in another process; the message has the reason."""


@check(
    3,
    demands="The same turns get the same grade again, also in another thread and in another process.",
    remedy="Grade without clocks, random draws, counters and other state of the process.",
)
def verifier_determinism(bench: Bench) -> CheckFinding:
    """Check that turns get the same grades again, in another thread and in another process (OpenEnv RFC 008)."""
    episodes = _episodes(bench)
    ways: dict[str, Any] = {
        "again": lambda: [replayed(bench.env, played.seed, played.actions).graded() for played in episodes],
        "in another thread": lambda: _in_thread(bench, episodes),
        "in another process": lambda: _in_process(bench, episodes, {}),
    }
    return _compared(episodes, ways)


@check(
    3,
    demands="Grading does not depend on Python's hash seed, the time zone, the language or the width of the terminal.",
    remedy="Sort before iterating over sets, name encodings, and use no locale in the grader.",
)
def verifier_portability(bench: Bench) -> CheckFinding:
    """Check that grades do not depend on hash seed, time zone, locale, terminal width or ``-O`` (OpenEnv RFC 008)."""
    episodes = _episodes(bench)
    return _compared(
        episodes,
        {
            "in a process with another hash seed, time zone, language and terminal width": lambda: _in_process(
                bench, episodes, _SURROUNDING, ["-O"]
            )
        },
    )


def _episodes(bench: Bench) -> list[BenchEpisode]:
    names = ["guesser", "canary", "noise"]
    with suppress(NotApplicableError):
        need_oracle(bench)
        names.append("oracle")
    return [played for name in names for played in bench.episodes(name, PLAYERS[name], _EACH)]


def _compared(episodes: Sequence[BenchEpisode], ways: Mapping[str, Any]) -> CheckFinding:
    figures: dict[str, Any] = {"episodes": len(episodes)}
    for way, grade in ways.items():
        try:
            grades = grade()
        except UntriedError as error:
            figures[way] = f"not tried: {error}"
            continue
        for played, other in zip(episodes, grades, strict=True):
            if tuple(other) != played.graded():
                said = (
                    f"the episode of seed {played.seed} was graded {played.graded()[:3]} at first, and "
                    f"{tuple(other)[:3]} {way}"
                )
                return CheckFinding(False, said, figures, [played])
        figures[way] = "the same"
    return CheckFinding(True, f"{len(episodes)} episodes got the same grades {', '.join(ways)}", figures)


def _in_thread(bench: Bench, episodes: Sequence[BenchEpisode]) -> list[tuple[Any, ...]]:
    env = bench.fresh()
    found: list[tuple[Any, ...]] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            found.extend(replayed(env, played.seed, played.actions).graded() for played in episodes)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="validate-again", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return found


def _in_process(
    bench: Bench, episodes: Sequence[BenchEpisode], variables: Mapping[str, str], arguments: Sequence[str] = ()
) -> list[tuple[Any, ...]]:
    try:
        made = pickle.dumps(bench.make)
    except Exception as error:
        raise UntriedError(
            f"the function that creates the environment cannot be pickled for another process ({type(error).__name__})"
        ) from error
    asked = {"path": sys.path, "make": made.hex(), "plays": [[played.seed, played.actions] for played in episodes]}
    done = subprocess.run(
        [sys.executable, *arguments, "-m", _MODULE],
        input=json.dumps(asked).encode(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables},
        timeout=_PATIENCE_S,
        check=False,
    )
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    if done.returncode != 0 or not lines:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RuntimeError(
            f"the other process ended with exit code {done.returncode}: {said[-1] if said else 'no output'}"
        )
    told = json.loads(lines[-1])
    if "untried" in told:
        raise UntriedError(told["untried"])
    return [tuple(grade) for grade in told["grades"]]
