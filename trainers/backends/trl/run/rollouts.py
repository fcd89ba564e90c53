"""``Rollouts``: the batches of a run, each collected when the trainer asks for it, or ahead of that.

Covered: when the engine gets weights, what is measured while a batch is collected, that an evaluation plays with the
weights of its step, and which engines can play ahead (``rollout.max_staleness``). Not covered: which batch may begin
when, which ``trainers/step/prefetch.py`` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import Player
from rstar2_env.rollout.engines.registry import ENGINES

from ....options.config import TrainConfig
from ....ranks import Ranks
from ....step.batch import Batch
from ....step.collector import Collector
from ....step.prefetch import Ahead, Pace
from ....step.sums import Figures, Sums
from ..trainer import CollectorTrainer
from ..weights.engine import PolicyEngine
from ..weights.engine_figures import add_engine_figures, stats_of
from ..weights.stale import StalePolicy
from .run_state import Settings, TrlRunState
from .stopping import Stopping

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Collected:
    """A batch with what goes with it.

    Attributes:
        batch: The batch.
        figures: What was measured while it was collected.
        settings: Limits and temperature of its episodes.
    """

    batch: Batch
    figures: Figures
    settings: Settings


class Rollouts:
    """Collects the batches of a run.

    Args:
        config: Options of the run.
        trl: Holds the policy, and adds up figures.
        collector: Collects a batch.
        player: Plays its episodes.
        policy: The engine, kept up to date.
        stale: That of older weights, where the run has one.
        state: What hooks change.
        stopping: Hears of signals.
        ranks: The processes.
    """

    def __init__(
        self,
        config: TrainConfig,
        trl: CollectorTrainer,
        *,
        collector: Collector,
        player: Player,
        policy: PolicyEngine,
        stale: StalePolicy | None = None,
        state: TrlRunState,
        stopping: Stopping,
        ranks: Ranks,
    ) -> None:
        self._trl, self._collector, self._player = trl, collector, player
        self._policy, self._stale, self._state, self._stopping = policy, stale, state, stopping
        self._first = not ranks.rank
        self._handing_s = 0.0
        self._ahead: Ahead[Collected, Settings] | None = None
        if config.rollout.max_staleness:
            pace = Pace(
                config.rollout.max_staleness,
                every=config.optim.updates_per_rollout * config.optim.minibatches,
                last=config.run.steps,
                carry=config.rollout.handover == "carry",
            )
            self._ahead = Ahead(
                collector, self._play_ahead, pace, hand_over=self._hand_over, settings=lambda: state.wanted
            )

    def collect(self, step: int) -> Batch:
        """Return the batch that begins to train at a step, and add up its figures.

        Args:
            step: Optimizer steps that are done.

        Raises:
            RolloutAbortedError: A signal came before it was collected.
            Exception: Playing it failed.
        """
        if self._ahead is None:
            self._state.begin_rollout()
            self._hand_over()
            with self._playing(), self._stopping.rollout(self._collector):
                collected = self._collected(step)
        else:
            begun, self._handing_s = time.perf_counter(), 0.0
            with self._stopping.rollout():
                collected = self._ahead.take(step)
            self._trl.sums.add("seconds/wait", time.perf_counter() - begun - self._handing_s)
            self._state.train_with(collected.settings)
        self._trl.sums.merge(collected.figures)
        return collected.batch

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """An evaluation plays within, with the present weights.

        Episodes that are collected ahead end first, unless they are carried over.
        """
        if self._ahead is None:
            self._policy.update()
            with self._playing(), self._stopping.rollout():
                yield
        else:
            version = int(self._trl.state.global_step)
            with self._stopping.rollout(), self._ahead.updated(version), self._playing():
                yield

    def on_trainer(self, work: Callable[[], T]) -> T:
        """Do something in the thread that trains, which need not be the one that collects."""
        return work() if self._ahead is None else self._ahead.on_trainer(work)

    def state_dict(self) -> Any:
        """The collector's state after the last batch that was taken."""
        return (self._ahead or self._collector).state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Go on from a state."""
        (self._ahead or self._collector).load_state_dict(state)

    def stop(self) -> None:
        """Abandon what is being collected ahead."""
        if self._ahead is not None:
            self._ahead.stop()

    def _play_ahead(self, step: int, settings: Settings) -> Collected:
        self._state.play_with(settings)
        return self._collected(step, settings)

    def _collected(self, step: int, settings: Settings | None = None) -> Collected:
        figures = Sums()
        before = stats_of(self._policy.engine)
        batch = self._collector.collect(step)
        after = stats_of(self._policy.engine)
        figures.merge(batch.figures)
        for name, seconds in batch.seconds.items():
            figures.add(f"seconds/{name}", seconds)
        spent = self._player.take_spent()
        figures.add("seconds/tool", spent.environment, spent.episodes)
        figures.add("seconds/engine_wait", spent.engine, spent.episodes)
        add_engine_figures(
            figures,
            before,
            after,
            seconds=batch.seconds["rollout"],
            first=self._first,
            each=self._policy.in_each_process,
        )
        return Collected(batch, figures.take(), settings or self._state.wanted)

    def _hand_over(self) -> None:
        begun = time.perf_counter()
        self._policy.update()
        if self._stale is not None:
            self._stale.update()
        self._handing_s = time.perf_counter() - begun
        self._trl.sums.add("seconds/hand_over", self._handing_s)

    @contextmanager
    def _playing(self) -> Iterator[None]:
        """The policy plays: without dropout, and with the engine's memory freed afterwards."""
        model: Any = self._trl.model
        training = model.training
        model.eval()
        try:
            yield
        finally:
            model.train(training)
            self._policy.rest()
            if self._stale is not None:
                self._stale.rest()


def check_ahead(config: TrainConfig) -> None:
    """Check that a run can collect ahead as its options say.

    Raises:
        ConfigurationError: Its engine cannot play while the policy trains, or there is nothing to carry over.
    """
    rollout = config.rollout
    ahead = f"rollout.max_staleness={rollout.max_staleness}"
    if rollout.max_staleness and ENGINES.get(rollout.engine).shares_weights:
        raise ConfigurationError(
            f"{ahead} plays episodes while the policy trains, but engine={rollout.engine!r} computes with the very "
            "weights that change: use an engine with weights of its own, such as engine='vllm-server', or "
            "rollout.max_staleness=0."
        )
    if rollout.max_staleness and rollout.engine_options.get("sleep"):
        raise ConfigurationError(
            f"{ahead} plays episodes while the policy trains, but an engine with engine.sleep=true is asleep then: "
            "leave sleep off, or set rollout.max_staleness=0."
        )
    if rollout.handover == "carry" and rollout.max_staleness < 2:
        raise ConfigurationError(
            f"rollout.handover='carry' has no episode to carry over with {ahead}: then every rollout begins after the "
            "hand-over that lets it begin, and ends before the next. Set rollout.max_staleness=2 or more, or "
            "rollout.handover='drain'."
        )
