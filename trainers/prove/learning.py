"""The parts ``sandbox`` and ``grpo``: replay traces, and train a small model with a cold start and GRPO-RoC."""

from __future__ import annotations

import math
import statistics
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rstar2_env.core.run_folder import read_run
from rstar2_env.traces.writer import Trace, generate_traces
from rstar2_env.wrappers.make import make_env

from .findings import PartFinding, ProofFigure, judged
from .scale import WHOLE, scale

ENV = "rstar2/MathTool-v0"
ENV_OPTIONS: dict[str, Any] = {
    "problems": "arithmetic:level=2",
    "dialect_options": {"system": "", "instruction": ""},
    "traceback": False,
    "max_turns": 5,
}


def sandbox(model: str | None) -> PartFinding:
    """Replay traces, and run their tool calls in the sandbox; ``model`` is not used."""
    traces = _traces(scale().traces)
    calls = [status for trace in traces for status in trace.statuses]
    lost = sum(not status.counts for status in calls)
    figures = [
        ProofFigure("tool calls", len(calls), 1, None, "each trace calls the tool", must=True),
        ProofFigure("tool calls lost to infrastructure", lost, 0, 0, "none", must=True),
    ]
    return judged("sandbox", f"{len(traces)} traces replayed", figures)


def _traces(count: int) -> list[Trace]:
    make = partial(make_env, ENV, **ENV_OPTIONS)
    return list(generate_traces(make, ENV_OPTIONS["problems"], episodes=count, seed=0))


def grpo(model: str | None) -> PartFinding:
    """Create a small model, cold-start it on traces, and train it with GRPO-RoC; ``model`` is not used."""
    from ..api import make, sft  # here, since both need TRL
    from ..demonstration.tiny import make_tiny_model

    sizes = scale()
    with TemporaryDirectory(prefix="rstar2-prove-") as place:
        folder = Path(place)
        start = make_tiny_model(folder / "untrained", hidden=sizes.policy_hidden, layers=2)
        common: dict[str, Any] = {"seed": 0, "progress": False}
        cold = sft(
            [trace.record() for trace in _traces(sizes.traces)],
            model=str(start),
            output_dir=str(folder / "start"),
            steps=sizes.sft_steps,
            batch_size=min(32, sizes.traces),
            learning_rate=3e-3,
            **common,
        )
        trainer = make(
            "grpo_roc",
            model=str(cold),
            env=ENV,
            env_options=ENV_OPTIONS,
            output_dir=str(folder / "run"),
            steps=sizes.grpo_steps,
            problems_per_step=sizes.groups,
            group_size=4,
            max_episode_tokens=128,
            max_turn_tokens=48,
            save_every=0,
            **common,
        )
        with closing(trainer):
            trainer.train()
        lines = [line for line in read_run(folder / "run").metrics() if line.get("step")]
    return judged(
        "grpo", f"{sizes.sft_steps} steps of the cold start, {sizes.grpo_steps} of GRPO-RoC", _of(lines, sizes)
    )


def _of(lines: list[Any], sizes: Any) -> list[ProofFigure]:
    found = {name: [float(line[name]) for line in lines if line.get(name) is not None] for name in _METRICS}
    trained = len(found["speed/train_tokens_per_second"])
    lost = max(found["rollout/unavailable"], default=0.0)
    medians = [
        ProofFigure(
            f"{words}, median of the steps", statistics.median(values), None, _METRICS_MOST.get(name), "bfloat16"
        )
        for name, words in _METRICS.items()
        if (values := [value for value in found[name] if not math.isnan(value)])
    ]
    low = 1 if sizes is WHOLE else None
    return [
        ProofFigure("steps", len(lines), sizes.grpo_steps, None, "all of them", must=True),
        ProofFigure("episodes lost to infrastructure, largest share of a step", lost, 0, 0, "none", must=True),
        # A group whose episodes all fail, or all succeed, is not trained on.
        ProofFigure("steps that trained on a group", trained, low, None, "the cold start solves some problems"),
        *medians,
    ]


_METRICS = {
    "rollout/unavailable": "share of episodes lost to infrastructure",
    "rollout/pass_rate": "share of correct episodes",
    "mismatch/logp_difference": "difference between engine and trainer, nats",
    "seconds/rollout": "seconds of a rollout",
    "seconds/train": "seconds of training",
    "speed/generated_tokens_per_second": "tokens generated per second",
    "speed/train_tokens_per_second": "tokens trained per second",
}
_METRICS_MOST = {"mismatch/logp_difference": 0.1}
