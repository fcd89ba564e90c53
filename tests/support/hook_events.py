"""A hook in a run without a model, told of logs, evaluations and rollouts one by one."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from rstar2_env.testing.training.plain_run import PlainRun


class HookEvents:
    """Calls a hook's events, and keeps what it did.

    Args:
        hook: The hook, which is bound to a new run.
        run: The run, if it must be one of its own.
    """

    def __init__(self, hook: Any, run: PlainRun | None = None) -> None:
        self.hook, self.run = hook, run or PlainRun(100)
        hook.bind(self.run)
        self.saved: list[int] = []
        self.stopped: int | None = None

    def logs(self, *values: float, metric: str) -> HookEvents:
        """One step for each value, which its log has."""
        for value in values:
            self.run.step += 1
            control = SimpleNamespace(should_save=False, should_training_stop=False)
            state = SimpleNamespace(global_step=self.run.step)
            self.hook.on_log(None, state, control, logs={metric: value, "loss": 0.1})
            self.hook.on_log(None, state, control, logs={"seconds/rollout": 1.0})
            self.saved += [self.run.step] if control.should_save else []
            if control.should_training_stop and self.stopped is None:
                self.stopped = self.run.step
        return self

    def done(self, what: str) -> list[tuple[int, Any]]:
        """The steps at which it did that, each with its value."""
        return [(step, value) for step, did, value in self.run.done if did == what]

    def noted(self) -> list[int]:
        """The steps at which it noted something."""
        return [step for step, _ in self.done("note")]

    def resumed(self, hook: Any) -> HookEvents:
        """Another hook that goes on from this one's state, in a run at the same step."""
        run = PlainRun(self.run.steps)
        run.step = self.run.step
        other = HookEvents(hook, run)
        hook.load_state_dict(json.loads(json.dumps(self.hook.state_dict())))
        return other
