"""Reads the log of another trainer into a ``RunRecord``: JSON lines of episodes and metrics, TRL's and verl's logs.

docs/diagnosis.md documents the minimal format of such a log. Not covered: the options of the other trainer; checks that
need an option are therefore listed as not recorded.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.episode_metrics import figure_sums
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.files.append_only import whole_lines
from rstar2_env.core.run_folder.entries import EpisodeEntry, entry_of
from rstar2_env.core.run_folder.layout import RUN_FILE
from rstar2_env.diagnosis.checks.signal import EQUAL, REASONS
from rstar2_env.diagnosis.facts import facts_of
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData

NAMES: Mapping[str, str] = {
    # TRL's GRPOTrainer, as in log_history of trainer_state.json
    "reward": "rollout/reward",
    "frac_reward_zero_std": "groups/equal_share",
    "entropy": "policy/entropy",
    "completions/mean_length": "rollout/tokens",
    "completions/clipped_ratio": "rollout/end/tokens",
    "clip_ratio/low_mean": "clip/low",
    "clip_ratio/high_mean": "clip/high",
    "sampling/sampling_logp_difference/mean": "mismatch/logp_difference",
    "tools/call_frequency": "rollout/tool_calls",
    "tools/failure_frequency": "rollout/tool_error_share",
    "step_time": "seconds/step",
    # verl, as its logger "file" writes them
    "critic/score/mean": "rollout/reward",
    "actor/entropy": "policy/entropy",
    "actor/grad_norm": "grad_norm",
    "actor/pg_loss": "loss",
    "actor/kl_loss": "kl",
    "actor/pg_clipfrac": "clip/high",
    "actor/pg_clipfrac_lower": "clip/low",
    "actor/lr": "learning_rate",
    "response_length/mean": "rollout/tokens",
    "response_length/clip_ratio": "rollout/end/tokens",
    "prompt_length/clip_ratio": "prompt/cut",
    "num_turns/mean": "rollout/turns",
    "timing_s/gen": "seconds/rollout",
    "perf/throughput": "speed/generated_tokens_per_second",
}
"""This package's name for each metric, by the metric's name in the logs of other trainers."""
_EVALUATED = re.compile(r"eval_reward|val-core/.+/mean@\d+|val-core/[^@]+")
"""Pattern of other trainers' names for the reward on held-out problems; if a line has several, the first name
counts."""
_OF_EPISODE = ("messages", "prompt", "completion", "input", "output")
_MOST_HEAD = 1 << 26
_EXPECTED = "expected the folder of a run, or the log of another trainer, as JSON lines with a whole number 'step'"
_GRADED = "graded"
"""Key in ``EpisodeEntry.more`` of a boolean: whether it is known if the episode is right."""


def is_foreign(path: Path) -> bool:
    """Whether a path is another trainer's log: TRL's ``trainer_state.json``, or a file without our own episodes."""
    if path.is_dir():
        return not (path / RUN_FILE).is_file() and (path / "trainer_state.json").is_file()
    if not path.is_file():
        return False
    if path.suffix == ".json":
        return True
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            first = json.loads(file.readline(_MOST_HEAD))
    except (ValueError, RecursionError, EOFError, OSError):
        return True
    return not (isinstance(first, dict) and ("index" in first or "kept" in first))


def read_foreign(path: Path) -> RunRecord:
    """Read the log of another trainer.

    Raises:
        RecordFormatError: A line is not an object with a whole number ``step``, an episode lacks a text or a reward, or
            the log has no steps.
    """
    file = path / "trainer_state.json" if path.is_dir() else path
    run = RunRecord(str(path))
    figures: dict[int, dict[str, float]] = {}
    episodes: dict[int, list[EpisodeEntry]] = {}
    held_out: dict[int, dict[str, float]] = {}
    for place, line in _lines(file):
        step = line.get("step")
        if not isinstance(step, int) or isinstance(step, bool):
            raise RecordFormatError(
                f"{place}: expected a JSON object with a whole number 'step', got {str(line)[:100]}."
            )
        if any(name in line for name in _OF_EPISODE):
            try:
                episode = _episode(place, step, line)
            except RecordFormatError:
                raise
            except (KeyError, TypeError, ValueError) as error:
                raise RecordFormatError(f"{place}: the episode cannot be read: {error!r}.") from error
            episodes.setdefault(step, []).append(episode)
            continue
        given = line.get("metrics", line.get("data", line))
        if not isinstance(given, Mapping):
            raise RecordFormatError(
                f"{place}: the field 'metrics' must be a JSON object of names and numbers, got {str(given)[:100]}."
            )
        for name, value in given.items():
            if name == "step" or isinstance(value, bool) or not isinstance(value, (int, float, type(None))):
                continue
            try:
                number = math.nan if value is None else float(value)
            except OverflowError as error:
                raise RecordFormatError(
                    f"{place}: the value of {name!r} is too large for a floating-point number."
                ) from error
            if _EVALUATED.fullmatch(name):
                held_out.setdefault(step, {}).setdefault("pass_rate", number)
            else:
                figures.setdefault(step, {})[NAMES.get(name, name)] = number
    episodes = _graded(episodes)
    for step in sorted({*figures, *episodes}):
        played = episodes.get(step, [])
        of_step = StepData(step, {}, _facts(step, played))
        of_step.figures = {**_figures(played), **_signals(of_step), **figures.get(step, {})}
        run.add(of_step)
    run.evaluations = [StepData(step, held_out[step]) for step in sorted(held_out)]
    if not run.steps:
        raise RecordFormatError(f"{file} does not contain a step: {_EXPECTED}.")
    return run


def _graded(played: Mapping[int, list[EpisodeEntry]]) -> dict[int, list[EpisodeEntry]]:
    """Decide from the rewards which episodes are right, for all episodes whose lines do not record it.

    If all of these rewards are -1, 0 or 1, they are verdicts: 1 is right, the others are wrong. Otherwise, an episode
    is right only if its reward is 1 and the largest, and wrong only if its reward is at most 0 while others are
    positive; in all other cases, this is unknown.
    """
    rewards = {entry.episode.reward for entries in played.values() for entry in entries if not _is_graded(entry)}
    verdicts = rewards <= {-1.0, 0.0, 1.0}

    def graded(entry: EpisodeEntry) -> EpisodeEntry:
        if _is_graded(entry):
            return entry
        reward = entry.episode.reward
        right, wrong = reward == max(rewards) == 1, reward <= 0 < max(rewards)
        entry.episode.correct = right
        return replace(entry, more={**entry.more, _GRADED: verdicts or right or wrong})

    return {step: [graded(entry) for entry in entries] for step, entries in played.items()}


def _is_graded(entry: EpisodeEntry) -> bool:
    return entry.more.get(_GRADED) is not False


def _facts(step: int, played: list[EpisodeEntry]) -> list[EpisodeDigest]:
    """Return the facts of a step's episodes; episodes without a group number are grouped by prompt."""
    questions: dict[str, int] = {}
    found = []
    for at, entry in enumerate(played):
        facts = facts_of(entry, f"step {step} episode {at}")
        group = facts.group if facts.group >= 0 else questions.setdefault(facts.question, len(questions))
        correct = facts.correct if _is_graded(entry) else None
        found.append(replace(facts, group=group, kept=True, correct=correct))
    return found


def _signals(step: StepData) -> dict[str, float]:
    """Count the groups with unequal rewards (``groups/signal``) and, by reason, the groups with equal rewards.

    The result is {} if the step has no episodes.
    """
    groups = step.groups()
    if not groups:
        return {}
    counts = dict.fromkeys(("signal", *REASONS, EQUAL), 0.0)
    for group in groups:
        if len({one.reward for one in group}) > 1:
            counts["signal"] += 1
        elif any(one.correct is None for one in group):
            counts[EQUAL] += 1
        elif all(one.correct for one in group):
            counts["all_correct"] += 1
        else:
            counts["not_selected" if any(one.correct for one in group) else "none_correct"] += 1
    return {f"groups/{name}": count for name, count in counts.items()}


def _lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line's place, for error messages, and the JSON object that it holds."""
    if file.suffix == ".json":
        state = _parsed(str(file), file.read_bytes())
        history = state.get("log_history")
        if not isinstance(history, list):
            raise RecordFormatError(
                f"{file}: expected a key 'log_history' whose value is a list, as in TRL's trainer_state.json."
            )
        for at, line in enumerate(history):
            # Skip the last entry, which has the totals of the run.
            if isinstance(line, dict) and "train_runtime" not in line:
                yield f"{file}, log_history[{at}]", line
        return
    for number, text in enumerate(whole_lines(file), 1):
        if text.strip():
            yield f"{file}, line {number}", _parsed(f"{file}, line {number}", text)


def _parsed(place: str, text: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordFormatError(f"{place} is not valid JSON ({error}): {_EXPECTED}.") from error
    if not isinstance(value, dict):
        raise RecordFormatError(f"{place}: expected a JSON object, got {str(value)[:100]!r}.")
    return value


def _episode(place: str, step: int, line: Mapping[str, Any]) -> EpisodeEntry:
    """Return the episode of a line: an episode in this package's form, or a prompt and a completion with a reward."""
    if "messages" in line and "answer_tags" in line:
        return entry_of(line, step)
    reward = line.get("reward", line.get("score"))
    if not isinstance(reward, (int, float)):
        raise RecordFormatError(
            f"{place}: an episode needs a number under the key 'reward' or 'score', got {reward!r}."
        )
    prompt, written = str(line.get("prompt", line.get("input", ""))), line.get("completion", line.get("output"))
    if isinstance(line.get("messages"), list):
        messages = [Message(str(one["role"]), str(one["content"])) for one in line["messages"]]
    elif isinstance(written, str):
        messages = [Message("user", prompt), Message("assistant", written)]
    else:
        raise RecordFormatError(f"{place}: an episode needs 'messages', or 'prompt' and 'completion' as texts.")
    episode = Episode(messages=messages, reward=float(reward))
    episode.group = int(line.get("group", -1))
    episode.problem_id = str(line.get("problem_id", ""))
    episode.rewards = {name: float(value) for name, value in dict(line.get("rewards", {})).items()}
    episode.correct = bool(line.get("correct"))
    episode.end = str(line.get("end", "cut" if line.get("truncated") else "answered"))
    episode.turns = sum(message.role == "assistant" for message in messages)
    episode.recorded_tokens = int(line.get("tokens", 0))
    more = {name: line[name] for name in ("prompt_tokens", "cut_prompt") if name in line}
    return EpisodeEntry(episode, step, more={**more, _GRADED: line.get("correct") is not None})


def _figures(played: list[EpisodeEntry]) -> dict[str, float]:
    """Return the metrics that follow from a step's episodes: means over the episodes.

    Metrics of right episodes are left out if it is unknown which episodes are right.
    """
    sums = figure_sums([entry.episode for entry in played])
    graded = all(map(_is_graded, played))
    return {
        f"rollout/{name}": total / count
        for name, (total, count) in sums.items()
        if count and (graded or not (name == "pass_rate" or name.endswith("_correct")))
    }
