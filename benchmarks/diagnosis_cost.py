"""Time of the live diagnosis as a share of a step: the demonstration's run, with the hook's time counted separately.

    python benchmarks/diagnosis_cost.py [--steps 140] [--write]

Runs ``rstar2 demo`` in a temporary folder and counts CPU seconds and seconds within the methods of the hook
``diagnosis``, which every run has. The share is that of the steps of the training, without the cold start, the
evaluations and the start. A step of the demonstration takes one to two seconds: the share of a real step, which takes
minutes, is smaller. ``--write`` writes docs/data/diagnosis_cost.json.

What it does not show: runs of thousands of steps (``live`` examines these less often), several processes.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rstar2_env.cli.demo import demo_command
from rstar2_env.trainers.hooks.diagnosis import DiagnosisHook

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from figures import write_results  # noqa: E402


@dataclass
class Spent:
    """CPU seconds and seconds within the hook, and of the steps that hold them.

    Attributes:
        hook: CPU seconds and seconds within the hook since the last step.
        steps: For each step without an evaluation, the hook's two times and the step's two times.
    """

    hook: list[float] = field(default_factory=lambda: [0.0, 0.0])
    steps: list[tuple[float, float, float, float]] = field(default_factory=list)
    began: tuple[float, float] | None = None
    evaluated: bool = False

    def counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method of the hook with its time counted; a logged loss ends a step."""

        @functools.wraps(method)
        def call(hook: Any, *given: Any, **named: Any) -> Any:
            began = _now()
            try:
                return method(hook, *given, **named)
            finally:
                now = _now()
                if name == "on_train_begin":
                    self.began = now
                else:
                    self.hook = [spent + a - b for spent, a, b in zip(self.hook, now, began, strict=True)]
                    self.evaluated |= name == "on_evaluate"
                if name == "on_log" and "loss" in (named.get("logs") or {}):
                    self._end_step(now)

        return call

    def _end_step(self, now: tuple[float, float]) -> None:
        if self.began and not self.evaluated:
            cpu, wall = (a - b for a, b in zip(now, self.began, strict=True))
            self.steps.append((*self.hook, cpu, wall))
        self.began, self.hook, self.evaluated = now, [0.0, 0.0], False


def _now() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


def measure(folder: Path, steps: int) -> dict[str, float]:
    """Run the demonstration in a folder; return the hook's shares and times.

    Args:
        folder: An empty folder.
        steps: Number of training steps.
    """
    spent = Spent()
    for name in ("on_train_begin", "wrote", "on_evaluate", "on_log"):
        setattr(DiagnosisHook, name, spent.counted(name, getattr(DiagnosisHook, name)))
    demo_command(output_dir=folder, steps=steps)
    hook_cpu, hook_wall, cpu, wall = (sum(column) for column in zip(*spent.steps, strict=True))
    return {
        "steps": len(spent.steps),
        "cpu_share": round(hook_cpu / cpu, 5),
        "share": round(hook_wall / wall, 5),
        "hook_ms": round(1000 * hook_wall / len(spent.steps), 2),
        "step_s": round(wall / len(spent.steps), 4),
    }


def main() -> None:
    """Measure, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        found = measure(Path(base) / "demo", asked.steps)
    for name, value in found.items():
        print(f"{name:10} {value}")
    if asked.write:
        write_results(
            "diagnosis_cost", f"python benchmarks/diagnosis_cost.py --steps {asked.steps} --write", figures=found
        )


if __name__ == "__main__":
    main()
