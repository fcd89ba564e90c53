"""``Rollouts``: supplies a run with batches, collected on demand or prefetched.

Covered: weight syncs, metrics of a rollout, evaluations with the weights of their step, and which engines allow
prefetching (``rollout.max_staleness``). Not covered: when a prefetched batch may begin (``trainers/step/prefetch.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.episode_metrics import MetricSums
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.telemetry import phase_span
from rstar2_env.rollout.engines.registry import ENGINES

from ....options.config import TrainConfig
from ....ranks import Together
from ....step.batch import Batch
from ....step.prefetch import Prefetch, PrefetchPace
from ....step.sums import Sums
from ..trainer import CollectorTrainer
from ..weight_sync.engine_metrics import add_engine_metrics, stats_of
from .interrupt import Stopping
from .parts import PlayParts, RunSetup
from .run_state import Settings, TrlRunState


@dataclass(frozen=True, slots=True)
class CollectedBatch:
    """A batch with its metrics and settings.

    Attributes:
        batch: The rows to train on, with their groups.
        figures: Metrics of its rollout.
        settings: Budgets and temperature of its episodes.
    """

    batch: Batch
    figures: MetricSums
    settings: Settings


class Rollouts:
    """Collects the batches of a run.

    Args:
        setup: The setup of the run.
        trl: The trainer, which holds the policy and sums metrics.
        play: The engines, the player and the collector.
        state: The settings that hooks change.
        stopping: Handles signals.
        observers: Called with each batch that the trainer takes, and the number of optimizer steps done before it.

    Attributes:
        failed: Error that prevented collecting the last batch, equal in every process. After an error, the weights and
            the collector are in the state in which the last optimizer step left them.
    """

    def __init__(
        self,
        setup: RunSetup,
        trl: CollectorTrainer,
        play: PlayParts,
        *,
        state: TrlRunState,
        stopping: Stopping,
        observers: Sequence[Callable[[int, Batch], object]] = (),
    ) -> None:
        self._trl, self._play, self._policy, self._stale = trl, play, play.policy, play.stale
        self._collector, self._state, self._stopping, self._observers = play.collector, state, stopping, observers
        self._ranks, self._first = setup.ranks, not setup.ranks.rank
        self._sync_s = 0.0
        self.failed: Exception | None = None
        self._prefetch: Prefetch[CollectedBatch, Settings] | None = None
        config = setup.config
        if config.rollout.max_staleness:
            pace = PrefetchPace(
                config.rollout.max_staleness,
                every=config.optim.updates_per_rollout * config.optim.minibatches,
                last=config.run.steps,
                carry=config.rollout.handover == "carry",
            )
            self._prefetch = Prefetch(
                play.collector, self._play_ahead, pace, hand_over=self._sync, settings=lambda: state.wanted
            )
            play.measuring.call_in = self._prefetch.on_trainer

    def collect(self, step: int) -> Batch:
        """Return the next batch to train on, after adding its metrics to the trainer's and calling the observers.

        Args:
            step: Number of optimizer steps done so far.

        Raises:
            RolloutAbortedError: A signal arrived before the batch was collected.
            Exception: Collecting the batch failed.
        """
        begun, self._sync_s = time.perf_counter(), 0.0
        try:
            collected = self._next(step)
        except Exception as error:
            self.failed = error
            raise
        if self._prefetch is not None:
            self._trl.sums.add("seconds/wait", time.perf_counter() - begun - self._sync_s)
            self._state.train_with(collected.settings)
        self._trl.sums.merge(collected.figures)
        self._trl.sums.add("mismatch/explained", self._policy.explained)
        if self._play.limits is not None:
            self._trl.sums.add("engine/in_flight", self._play.limits.in_flight.number, float(self._first))
        for observe in self._observers:
            observe(step, collected.batch)
        return collected.batch

    def _next(self, step: int) -> CollectedBatch:
        if self._prefetch is not None:
            with self._stopping.rollout():
                return self._prefetch.take(step)
        self._state.begin_rollout()
        with Together(self._ranks):
            self._sync()
        with self._playing(), self._stopping.rollout(self._collector):
            return self._collected()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Context manager for an evaluation; it first syncs the current weights to the engine.

        Unless ``handover="carry"`` is set, the evaluation starts only after the prefetched episodes have finished.
        """
        if self._prefetch is None:
            self._policy.update()
            with self._playing(), self._stopping.rollout():
                yield
        else:
            step, between = int(self._trl.state.global_step), self._trl.pending is None
            with self._stopping.rollout(), self._prefetch.updated(step, between=between), self._playing():
                yield

    def state_dict(self) -> Any:
        """Return the collector's state after the last batch that the trainer took."""
        return (self._prefetch or self._collector).state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Restore a state that ``state_dict`` returned."""
        (self._prefetch or self._collector).load_state_dict(state)

    def stop(self) -> None:
        """Abandon the prefetched batches."""
        if self._prefetch is not None:
            self._prefetch.stop()

    def _play_ahead(self, settings: Settings) -> CollectedBatch:
        self._state.play_with(settings)
        return self._collected(settings)

    def _collected(self, settings: Settings | None = None) -> CollectedBatch:
        figures = Sums()
        before = stats_of(self._policy.engine)
        batch = self._collector.collect(self._collector.counts["steps"])
        after = stats_of(self._policy.engine)
        figures.merge(batch.figures)
        for name, seconds in batch.seconds.items():
            figures.add(f"seconds/{name}", seconds)
        several = self._ranks.size > 1
        figures.add("seconds/share_waiting", batch.slowest - batch.seconds["rollout"], batch.slowest * several)
        figures.add("rollout/slowest_process", float(batch.slowest_process * several), float(several))
        timing = self._play.train.take_timing()
        figures.add("seconds/tool", timing.environment, timing.episodes)
        figures.add("seconds/engine_wait", timing.engine, timing.episodes)
        add_engine_metrics(
            figures,
            before,
            after,
            seconds=batch.seconds["rollout"],
            first=self._first,
            each=self._policy.in_each_process,
        )
        return CollectedBatch(batch, figures.take(), settings or self._state.wanted)

    def _sync(self) -> None:
        """Sync the weights to the engines, and add the duration to the metrics."""
        begun = time.perf_counter()
        with phase_span("hand_over"):
            self._policy.update()
            if self._stale is not None:
                self._stale.update()
        self._sync_s = time.perf_counter() - begun
        self._trl.sums.add("seconds/hand_over", self._sync_s)

    @contextmanager
    def _playing(self) -> Iterator[None]:
        """Context manager that puts the policy in evaluation mode and, at its end, frees the engines' memory."""
        model: Any = self._trl.model
        training = model.training
        model.eval()
        try:
            yield
        finally:
            model.train(training)
            self._policy.free_memory()
            if self._stale is not None:
                self._stale.free_memory()


def check_ahead(config: TrainConfig) -> None:
    """Check that a run can prefetch batches with its options.

    Raises:
        ConfigurationError: The engine or another option rules out playing episodes during training, or
            ``handover="carry"`` is set although no episode can be unfinished at a weight sync.
    """
    rollout = config.rollout
    ahead = f"rollout.max_staleness={rollout.max_staleness}"
    if rollout.max_staleness and ENGINES.get(rollout.engine).shares_weights:
        raise ConfigurationError(
            f"{ahead} plays episodes while the policy is trained, but engine={rollout.engine!r} computes "
            "with the weights that are being trained. Use an engine with its own copy of the weights, "
            "such as engine='vllm-server', or set rollout.max_staleness=0."
        )
    if rollout.max_staleness and rollout.engine_options.get("sleep"):
        raise ConfigurationError(
            f"{ahead} plays episodes while the policy is trained, but engine.sleep=true makes the engine "
            "release its memory during training. Set engine.sleep=false or rollout.max_staleness=0."
        )
    if rollout.max_staleness and config.optim.offload_state:
        raise ConfigurationError(
            f"{ahead} plays episodes while the policy is trained, but optim.offload_state=true moves the "
            "optimizer's state to host memory while episodes are played. Remove optim.offload_state, or "
            "set rollout.max_staleness=0.",
            option="optim.offload_state",
        )
    if rollout.handover == "carry" and rollout.max_staleness < 2:
        raise ConfigurationError(
            "rollout.handover='carry' continues unfinished episodes with the next weights, but with "
            f"{ahead}, every rollout begins after one weight sync and ends before the next, so no episode "
            "is unfinished. Set rollout.max_staleness=2 or more, or rollout.handover='drain'."
        )
