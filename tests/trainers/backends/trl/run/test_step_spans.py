"""The spans and gauges of a run: a trace for each step, from the optimizer down to the calls of the policy."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")

from otlp_receiver import otlp_receiver
from recipe_run import train_recipe
from recorded_spans import recorded_spans

from rstar2_env import trainers
from rstar2_env.core.run_folder import read_run

pytestmark = pytest.mark.train


def test_each_step_is_a_trace_from_its_phases_to_its_calls(tiny_model: Path, tmp_path: Path) -> None:
    with recorded_spans() as found:
        train_recipe("grpo_roc", "tool", tiny_model, tmp_path / "run", eval={"every": 2, "episodes": 2})
    parents = found.parents()
    agent, tool = "invoke_agent policy", "execute_tool execute_python_code_with_standard_io"
    assert {name: parents[f"rstar2.train.{name}"] for name in ("step", "collect", "update", "optimizer")} == {
        "step": {""},
        "collect": {"rstar2.train.step"},
        "update": {"rstar2.train.step"},
        "optimizer": {"rstar2.train.step"},
    }
    phases = {f"rstar2.train.{name}" for name in ("rollout", "reward", "select", "advantage")}
    assert all(parents[name] == {"rstar2.train.collect"} for name in phases & parents.keys())
    assert parents[agent] == {"rstar2.train.rollout", "rstar2.train.evaluate"}
    assert parents[tool] == {agent}
    assert parents[f"chat {tiny_model}"] == {agent}
    steps = found.named("rstar2.train.step")
    assert [(one.attributes or {})["rstar2.train.step"] for one in steps] == [1, 2]
    assert len({one.context.trace_id for one in steps}) == 2

    figures = read_run(tmp_path / "run").metrics()[-1]
    metrics = found.metrics()
    for figure in ("loss", "rollout/pass_rate", "seconds/train"):
        (point,) = metrics[f"rstar2.train.{figure.replace('/', '.')}"].data.data_points
        assert point.value == pytest.approx(figures[figure])
    assert metrics["rstar2.train.seconds.train"].unit == "s"


def test_a_cold_start_sends_each_step_and_its_loss(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [{"role": "user", "content": "say a"}, {"role": "assistant", "content": "aaa"}]
    with otlp_receiver() as receiver:
        monkeypatch.setenv("RSTAR2_OTEL", receiver.address)
        trainers.sft(
            [{"messages": turns}] * 4,
            model=str(tiny_model),
            output_dir=str(tmp_path / "sft"),
            batch_size=2,
            rows_per_device=2,
            steps=2,
            threads=1,
            save_every=0,
            progress=False,
        )
    names = [one.name for one in receiver.spans]
    assert (names.count("rstar2.train.step"), names.count("rstar2.train.optimizer")) == (2, 2)
    assert "rstar2.train.loss" in {one.name for one in receiver.metrics}
