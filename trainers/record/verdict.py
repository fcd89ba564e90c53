"""The verdict of a training run: whether it learned something, the reason if not, and suggested commands.

Covered: the share of groups with a signal, steps without an update, held-out pass rates with intervals; all are
computed from the files of the run's folder. Not covered: causes that cannot be found in these files.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.run_folder import Run, read_run
from rstar2_env.evaluation.figures.statistics import Interval, paired, wilson

from ..options.config import DEFAULT_ENV

_FIGURE = "pass_rate"
_CHANGE = "weights/change"
_MANY = 0.5
"""Minimum share of the groups, or of the episodes, that a cause must affect for the verdict to name it."""
_DIAGNOSED = 5
"""Minimum number of steps at which ``rstar2 diagnose`` is suggested; most of its checks need as many steps."""
_ROUNDING = 2.0**-24
"""Change of the weights by a step, relative to their norm, below which the step counts as no update: the rounding error
of float32, the most precise format in which weights are trained. The change is computed from a sample of the weights.
If one sampled weight of ordinary size changes by its last bit in bfloat16, the change is above this limit."""
REASONS = {
    "none_correct": "with no correct episode",
    "all_correct": "with only correct episodes",
    "unavailable": "whose episodes were all unavailable",
    "not_selected": "that the selector rejected",
}
"""Reasons why a group has no signal, each with its description."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """Summary of a run: its groups and steps with and without a signal, and its result on held-out problems.

    Attributes:
        steps: Number of optimizer steps.
        updates: Number of steps that changed the weights by at least the rounding of float32. If the change is not
            recorded, every step that had something to train on counts.
        groups: Number of groups played.
        signal: Number of groups with a signal, that is, with an episode whose advantage is not 0.
        without_signal: Number of groups without a signal, by reason; see ``REASONS``.
        before: Held-out pass rate before the first step, with Wilson's interval, as ``[value, low, high]``; ``None``
            without evaluation.
        after: Held-out pass rate of the last evaluation, in the same form.
        difference: ``after`` minus ``before``, paired by problem, with its bootstrap interval; ``None`` if no problem
            differs, or without held-out episodes.
        sentences: The verdict in words.
        commands: Suggested commands.
    """

    steps: int
    updates: int
    groups: int
    signal: int
    without_signal: Mapping[str, int]
    before: Sequence[float] | None
    after: Sequence[float] | None
    difference: Sequence[float] | None
    sentences: Sequence[str]
    commands: Sequence[str]

    def record(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return asdict(self)


def verdict_of(folder: Path, sentence: str, model_dir: Path) -> RunVerdict:
    """Compute the verdict of a finished run.

    Args:
        folder: The run's folder.
        sentence: The sentence that ``outcome`` returned.
        model_dir: Folder of the run's weights.
    """
    run = read_run(folder)
    lines = [line for line in run.metrics() if "groups/signal" in line]
    # A line holds the means over the steps since the line before it.
    weights = np.diff([0.0, *(line["step"] for line in lines)]) if lines else np.zeros(0)

    def total(name: str) -> int:
        return round(float(sum(weight * line.get(name, 0.0) for weight, line in zip(weights, lines, strict=True))))

    def mean(name: str) -> float:
        known = [line[name] for line in lines if not math.isnan(line.get(name, math.nan))]
        return float(np.mean(known)) if known else 0.0

    steps = int(lines[-1]["step"]) if lines else 0
    trained = [(weight, line) for weight, line in zip(weights, lines, strict=True) if line.get("tokens/trained", 0.0)]
    rounded = [(weight, line) for weight, line in trained if line.get(_CHANGE, math.inf) < _ROUNDING]
    tried, lost = (int(sum(weight for weight, _ in some)) for some in (trained, rounded))
    idle, updates = steps - tried, tried - lost
    signal = total("groups/signal")
    without = {reason: count for reason in REASONS if (count := total(f"groups/{reason}"))}
    groups = signal + sum(without.values())
    before, after, difference = _held_out(run)
    words = [_trained(steps, groups, signal, idle=idle, lost=lost)]
    if without:
        words.append(f"Groups without a signal: {', '.join(f'{n} {REASONS[name]}' for name, n in without.items())}.")
    words.append(sentence)
    if before is not None and after is not None:
        moved = "" if difference is None else f"; difference {_text(difference, sign='+')}, paired by problem"
        words.append(f"Held-out pass rate: {_text(before)} before, {_text(after)} after{moved} (95 % intervals).")
    config = run.config
    quoted = shlex.quote(str(folder))
    commands = [f"rstar2 view {quoted}", _evaluate(config, model_dir)]
    diagnose = [f"rstar2 diagnose {quoted}"] if steps >= _DIAGNOSED else []
    if before is not None and after is not None and after.value <= before.value:
        commands[1:1] = diagnose
    if groups and not signal:
        ends = {name: mean(f"rollout/end/{name}") for name in ("tokens", "turns", "no_answer")}
        words[:0] = _why_nothing(without, groups, ends, mean("rollout/broken_format"))
        commands = [f"rstar2 view --text {quoted}", *diagnose]
        if without.get("none_correct", 0) >= _MANY * groups:
            commands += _cold_start(config)
    elif lost and not updates:
        words.insert(0, _why_unchanged([line for _, line in rounded]))
        commands = [f"rstar2 view --text {quoted}", *diagnose]
    own, now, change = (None if one is None else [one.value, one.low, one.high] for one in (before, after, difference))
    return RunVerdict(steps, updates, groups, signal, without, own, now, change, words, commands)


def _evaluate(config: Mapping[str, Any], model_dir: Path) -> str:
    """Return the command that evaluates the weights in the run's environment."""
    env, problems, options = _task(config)
    count = [] if _is_file(problems) else ["-n", "100"]
    given = ["--problems", problems] if problems else []
    return shlex.join(["rstar2", "eval", env, "--model", str(model_dir), *given, *count, *options])


def _cold_start(config: Mapping[str, Any]) -> list[str]:
    """Return the commands that make traces of the run's problems, and train the run's model on them."""
    env, problems, options = _task(config)
    if problems:
        given = ["--problems", problems, *([] if _is_file(problems) else ["-n", "1000"])]
    else:
        given = ["--model", "STRONGER_MODEL", "-n", "1000"]
    model = str(config.get("model", {}).get("path") or "MODEL")
    return [
        shlex.join(["rstar2", "traces", "--env", env, *given, *options, "--out", "traces.jsonl"]),
        shlex.join(["rstar2", "sft", "--traces", "traces.jsonl", "--model", model, "--out", "cold-start"]),
    ]


def _task(config: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    """Return a run's environment, its problems (empty for the environment's own), and the environment options as flags.

    A flag is ``--set env.NAME=VALUE``. The option ``holdout`` is the exception: if the run names its problems, it is
    appended to their name (``SPEC:holdout=SHARE``).
    """
    rollout = config.get("rollout", {})
    options = dict(rollout.get("env_options") or {})
    problems = options.pop("problems", None)
    if isinstance(problems, str) and (share := options.pop("holdout", 0.0)) and "holdout=" not in problems:
        problems += f"{',' if ':' in problems else ':'}holdout={share}"
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    settings = [word for name, text in texts.items() for word in ("--set", f"env.{name}={text}")]
    return str(rollout.get("env", DEFAULT_ENV)), problems if isinstance(problems, str) else "", settings


def _is_file(problems: str) -> bool:
    return bool(problems) and Path(problems.partition(":")[0]).exists()


def _trained(steps: int, groups: int, signal: int, *, idle: int, lost: int) -> str:
    """Describe how many groups had a signal, and how many steps changed the weights.

    Args:
        steps: Number of steps.
        groups: Number of groups.
        signal: Number of groups with a signal.
        idle: Number of steps without anything to train on.
        lost: Number of steps whose change of the weights is below ``_ROUNDING``.
    """
    share = f" ({100 * signal / groups:.0f} %)" if groups else ""
    still = [f"{idle} of {steps} steps had nothing to train on"] if idle else []
    if lost:
        still.append(f"{lost} of {steps} steps changed the weights by less than the rounding of float32")
    if not still:
        still = [f"{'the only step' if steps == 1 else f'all {steps} steps'} changed the weights"]
    return f"{signal} of {groups} groups{share} had a signal to learn from; {'; '.join(still)}."


def _why_unchanged(lines: Sequence[Mapping[str, float]]) -> str:
    """Explain why the steps whose metrics are given changed no weights, and name the remedy."""
    change = max(line[_CHANGE] for line in lines)
    rates = [line["learning_rate"] for line in lines if "learning_rate" in line]
    rate = f" at a learning rate of {max(rates):.2g}" if rates else ""
    return (
        f"Nothing was learned: the steps changed the weights by at most {change:.2g} of their norm{rate}, less than "
        f"the rounding of float32 ({_ROUNDING:.1g}): raise the learning rate (--lr)."
    )


def _why_nothing(without: Mapping[str, int], groups: int, ends: Mapping[str, float], broken: float) -> list[str]:
    """Explain why no group had a signal, and name remedies.

    Args:
        without: Number of groups without a signal, by reason.
        groups: Number of all groups.
        ends: Share of the episodes that ended as ``tokens``, ``turns`` and ``no_answer``, by these names.
        broken: Share of the episodes whose answer has a wrong format.
    """
    words = ["Nothing was learned: no group had a signal to learn from, so no step changed the weights."]
    reason = max(without, key=lambda name: without[name])
    if reason == "all_correct":
        return [*words, "The problems are too easy for this model: train on harder ones."]
    if reason == "unavailable":
        return [
            *words,
            (
                "The episodes could not be played: the field `error` of the episodes, in the folder of the run, "
                "states the cause."
            ),
        ]
    if reason == "not_selected":
        return [
            *words,
            (
                "The selector rejected groups with both correct and wrong episodes: check its options, or use "
                "--set selector=all."
            ),
        ]
    if ends["tokens"] >= _MANY:
        words.append(
            f"{100 * ends['tokens']:.0f} % of the episodes ended at the limit of tokens: raise it with "
            "--max-tokens N (max_episode_tokens)."
        )
    if ends["turns"] >= _MANY:
        words.append(
            f"{100 * ends['turns']:.0f} % of the episodes ended at the limit of turns: raise it with "
            "--set env.max_turns=N."
        )
    if max(ends["no_answer"], broken) >= _MANY:
        shares = {"ended without an answer": ends["no_answer"], "gave the answer in a wrong format": broken}
        known = " and ".join(f"{100 * share:.0f} % {what}" for what, share in shares.items() if share)
        words.append(f"Among the episodes, {known}: the model does not know the format of answers.")
    remedy = "cold-start the model on traces (rstar2 traces, rstar2 sft), or train on easier problems"
    return [*words, f"No episode of {without[reason]} of {groups} groups was correct: {remedy}."]


def _held_out(run: Run) -> tuple[Interval | None, Interval | None, Interval | None]:
    """Return the pass rates of the first and the last evaluation, and their difference, with intervals."""
    evaluations = run.evaluations
    if not evaluations:
        return None, None, None
    first, last = evaluations[0].step, evaluations[-1].step
    try:
        rates = [
            {one.group: float(one.correct) for one in (entry.episode for entry in run.held_out(step)) if one.available}
            for step in (first, last)
        ]
    except Rstar2Error:
        return None, None, None
    if not all(rates):
        return None, None, None
    before, after = (wilson(sum(own.values()) / len(own), len(own)) for own in rates)
    shared = sorted(rates[0].keys() & rates[1].keys())
    if first == last or not shared:
        return before, after, None
    values = [np.array([own[key] for key in shared]) for own in rates]
    # A bootstrap interval has no width if every difference is 0.
    difference = paired(values[0], values[1])[0] if np.any(values[0] != values[1]) else None
    return before, after, difference


def _text(interval: Interval, sign: str = "") -> str:
    return f"{interval.value:{sign}.3f} ({interval.low:{sign}.3f} to {interval.high:{sign}.3f})"


def outcome(
    before: Mapping[str, float | None] | None, after: Mapping[str, float | None] | None, best_step: int | None
) -> str:
    """Describe the result of a run on held-out problems.

    Args:
        before: Held-out metrics before the first step; ``None`` without evaluation.
        after: Held-out metrics of the last evaluation; ``None`` without evaluation.
        best_step: Step of the best weights; 0 for the initial weights, ``None`` without evaluation.
    """
    if before is None or after is None or best_step is None:
        return (
            "No evaluation on held-out problems was made, so it is unknown which step is the best; the "
            "weights are those of the last step."
        )
    first, last = before.get(_FIGURE), after.get(_FIGURE)
    if first is None or last is None or math.isnan(first) or math.isnan(last):
        return "In one evaluation, no held-out episode could be counted, so the held-out pass rate is unknown."
    change = f"the held-out pass rate went from {first:.4f} to {last:.4f}"
    chance = ", a difference within two standard errors" if _within_chance(before, after) else ""
    if last > first:
        return f"Better: {change}{chance}; the best weights are those of step {best_step}."
    kept = f"the best weights are those of step {best_step}"
    if best_step == 0:
        kept = "no evaluation was better than the first, so the best weights are the initial ones"
    if last < first:
        return f"Worse: {change}{chance}; {kept}."
    return f"No change: {change}; {kept}."


def _within_chance(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> bool:
    errors = [figures.get(f"{_FIGURE}_se") for figures in (before, after)]
    known = [error for error in errors if error is not None and not math.isnan(error)]
    change = abs((after[_FIGURE] or 0.0) - (before[_FIGURE] or 0.0))
    return len(known) == 2 and change <= 2 * math.hypot(*known)
