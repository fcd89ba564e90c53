"""``TrlRun``: one run of a recipe on TRL: it connects engine, players, collector, trainer and the run's folder."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from transformers import PrinterCallback

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import FloatArray, Row
from rstar2_env.core.run_folder import RunWriter, TokensEntry, read_run
from rstar2_env.rewards.judges import make_reward_judge
from rstar2_env.rollout import EpisodeRequest

from ....base import TrainResult
from ....options.config import TrainConfig
from ....options.parts import correction_of, make_parts
from ....queue.adaptive import adaptive
from ....record.checkpoints import step_of
from ....record.model_card import write_cards
from ....record.resume import check_begun, checkpoint_to_resume
from ....rollouts.base import HoldsOlder
from ....samplers.uniform import Uniform
from ....step.batch import Batch
from ....step.collector import Collector
from ....step.metrics import metrics
from ....step.problem_facts import about_problems
from ..arguments import run_arguments
from ..loss.forward import Reference
from ..loss.measuring import Measuring
from ..loss.objective import Objective
from ..loss.pending_rows import Shape
from ..loss.teacher import load_teacher
from ..model import codec, dtype_of, load_policy, processes
from ..players import env_factory, gold_answers, make_player, opening, problem_ids, problem_source
from ..ranks import AccelerateRanks, OwnRanks
from ..sharding.choice import chosen_sharding
from ..sharding.earlier_optimizer import checkpoint_to_carry
from ..sharding.zero import zero_arguments
from ..trainer import CollectorTrainer
from ..weights.engine import PolicyEngine
from ..weights.stale import StalePolicy, stale_copy
from .callbacks import BEST_DIR, Console, Evaluation, RunEvents
from .checks import check_config
from .hooks import Hooks
from .lengths import check_lengths
from .rollouts import Rollouts
from .run_state import TrlRunState
from .sample_table import SampledEpisodes, sampled
from .stopping import RolloutAbortedError, Stopping

FINAL_DIR = "final"
_EVAL_SEED = 1_000_003
"""Seed of evaluation; a constant, so that every evaluation of every run plays the same problems."""


class TrlRun:
    """One training run of a recipe on TRL.

    Args:
        name: Name of the recipe.
        config: Options of the run.

    Raises:
        ConfigurationError: The options contradict each other or do not fit the number of processes, the folder holds
            an earlier run and ``resume`` is off, or the optimizer's state to begin with does not fit.
    """

    def __init__(self, name: str, config: TrainConfig) -> None:
        self.name, self.config = name, config
        check_config(config)
        config.parts.correction = correction_of(config)  # the run's record says what "auto" stood for
        sharding = chosen_sharding(config.run.sharding)
        if config.run.threads is not None:
            torch.set_num_threads(config.run.threads)
        self._folder = Path(config.run.output_dir)
        self._ranks = AccelerateRanks(processes(config.run.process_timeout_s))
        self._checkpoint = self._find_checkpoint()
        carried = None
        if self._checkpoint is None and config.optim.begin_from is not None:
            carried = checkpoint_to_carry(config.optim.begin_from)
        parts = make_parts(config)
        divided = sharding == "fsdp2" and self._ranks.size > 1
        waits = divided and self._ranks.rank > 0  # for the weights that the first process sends
        model, self.tokenizer = load_policy(config.model, self._folder, seed=config.run.seed, waits=waits)
        copy = stale_copy(config, parts.rollout, model, dtype_of(config.model), divided=divided)
        objective = Objective(parts.terms, parts.aggregation, parts.correction)
        reference = None
        if "reference" in objective.needs:
            reference = Reference(model, dtype_of(config.model), config.rollout.temperature)
        given = "teacher" in getattr(parts.rollout, "columns", ())
        teacher = load_teacher(config, model, self.tokenizer, objective.needs, given=given, waits=waits)
        self._files = RunWriter(
            self._folder,
            rank=self._ranks.rank,
            episodes=config.run.keep_episodes,
            tokens=config.run.keep_tokens,
        )
        self._console = Console(name, self._files, visible=config.run.progress)
        self._stopping = Stopping(
            self._folder,
            lambda number: max(self._ranks.gather(number)),
            alone=self._ranks.size == 1,
            speaks=not self._ranks.rank,
        )
        self._samples = SampledEpisodes(config.run.report_to, lambda: self.trl.callback_handler.callbacks)
        with _quiet():
            self.trl = CollectorTrainer(
                collector=self,
                objective=objective,
                shape=Shape(
                    config.optim.tokens_per_device,
                    passes=config.optim.updates_per_rollout,
                    minibatches=config.optim.minibatches,
                    seed=config.run.seed,
                ),
                reference=reference,
                teacher=teacher,
                sharding=sharding,
                begin_from=carried,
                keep_checkpoints=config.run.keep_checkpoints,
                on_trained=self._write_tokens if config.run.keep_tokens else None,
                model=model,
                processing_class=self.tokenizer,
                args=run_arguments(config, **zero_arguments(sharding, self._ranks.size)),
                callbacks=[
                    self._console,
                    RunEvents(self._files, lambda: self._rollouts.state_dict()),
                    self._samples,
                    self._stopping,
                ],
            )
        self.trl.remove_callback(PrinterCallback)
        self._policy = PolicyEngine(config, self.trl, self.tokenizer)
        self.engine = self._policy.engine
        self._stale = None
        if isinstance(parts.rollout, HoldsOlder):
            self._stale = StalePolicy(config, self.trl, self.tokenizer, parts.rollout.older_weights, copy)
        chat = codec(config.model, self.tokenizer, model)
        check_lengths(config, self.engine, chat, getattr(model.config, "max_position_embeddings", None))
        self._players = {
            # A codec of its own: this player may play in another thread, and a codec learns as it goes.
            "train": make_player(
                config,
                "train",
                self.engine,
                codec(config.model, self.tokenizer, model),
                stale_engine=None if self._stale is None else self._stale.engine,
            ),
            "eval": make_player(config, "eval", self.engine, chat),
        }
        measuring = Measuring(
            self.trl,
            encode=chat.plain,
            answer=gold_answers(config) if "answer" in getattr(parts.advantage, "needs", ()) else None,
            temperature=lambda: self._players["train"].sampling.temperature,
            prepare=self._policy.rest,
        )
        ahead = config.rollout.max_staleness > 0
        self._limits = None
        if config.rollout.adaptive_in_flight:
            self._limits = adaptive(
                self.engine,
                config.rollout.engine,
                longest=config.rollout.max_episode_tokens,
                most=config.rollout.max_in_flight,
                processes=self._ranks.size,
            )
        problems = problem_source(config, "train")
        # Each is made when its first episodes are written; a run without evaluation never makes the second.
        self._about = functools.cache(
            lambda split: about_problems(problems if split == "train" else problem_source(config, "eval"))
        )
        self.collector = Collector(
            parts,
            self._players["train"],
            problems_per_step=config.rollout.problems_per_step,
            group_size=config.rollout.group_size,
            oversample=config.rollout.oversample,
            refill=config.rollout.refill,
            replace=config.rollout.replace,
            seed=config.run.seed,
            ranks=OwnRanks(processes(), timeout_s=config.run.process_timeout_s) if ahead else self._ranks,
            sampler=parts.sampler_factory(problems, config.run.seed),
            problems=problems,
            early_stop=config.rollout.early_stop,
            one_queue=config.rollout.one_queue,
            tail=config.rollout.tail,
            spare=config.rollout.spare_groups,
            limits=self._limits,
            patience_s=config.run.process_timeout_s,
            judge=None if config.rollout.judge is None else make_reward_judge(config.rollout.judge),
            measure=lambda part, groups: self._rollouts.on_trainer(lambda: measuring(part, groups)),
        )
        self._state = TrlRunState(
            self.trl,
            self._players["train"],
            chat,
            make_env=lambda overriding: env_factory(config, "train", overriding),
            terms=parts.term_names,
            on_new_weights=self._policy.outdate,
            on_note=lambda step, text: self._files.event("note", step, text=text),
            openings=lambda: {
                "train": opening(config, "train", self._players["train"].chat),
                "eval": opening(config, "eval", self._players["eval"].chat),
            },
        )
        self._hooks = Hooks(parts.hooks, self._state)
        self.trl.add_callback(self._hooks)
        self._rollouts: Rollouts = Rollouts(
            config,
            self.trl,
            collector=self.collector,
            player=self._players["train"],
            policy=self._policy,
            stale=self._stale,
            state=self._state,
            stopping=self._stopping,
            ranks=self._ranks,
        )
        self.trl.keep("collector", self._rollouts)
        self.trl.keep("hooks", self._hooks)
        self._evaluation: Evaluation | None = None

    def train(self) -> TrainResult:
        """Run all steps; see ``Trainer``."""
        config = self.config
        self._begin()
        if config.eval.every:
            self._evaluation = Evaluation(
                self.evaluate, self._save, self._log_evaluation, every=config.eval.every, folder=self._folder
            )
            self.trl.add_callback(self._evaluation)
        with self._stopping.listening():
            try:
                self._run_steps()
            except BaseException as error:
                stopped = isinstance(error, (KeyboardInterrupt, SystemExit))
                why = {} if stopped else {"error": f"{type(error).__name__}: {error}"}
                self._files.event("interrupted" if stopped else "failed", self.trl.state.global_step, **why)
                self._write_cards()
                raise
            self._save(str(self._folder / FINAL_DIR))
            self._files.event("finished", self.trl.state.global_step)
            self._write_cards()
            self._stopping.end()
        evaluation = self._evaluation
        return TrainResult(
            output_dir=self._folder,
            model_dir=self._folder / (BEST_DIR if evaluation else FINAL_DIR),
            before=evaluation.before if evaluation else None,
            after=evaluation.after if evaluation else None,
            best_step=evaluation.best_step if evaluation else None,
            history=read_run(self._folder).metrics(),
        )

    def _run_steps(self) -> None:
        """Take the steps; a signal that ends them early raises once a checkpoint is written."""
        aborted = False
        try:
            with _quiet():
                self.trl.train(resume_from_checkpoint=None if self._checkpoint is None else str(self._checkpoint))
        except RolloutAbortedError:
            aborted = True
        finally:
            self._rollouts.stop()
            self._console.close()
        if self._stopping.early(self.trl, aborted=aborted):
            self._stopping.end_early(self.trl)

    def evaluate(self) -> dict[str, float]:
        """Play the held-out episodes, divided among the processes; see ``Trainer``."""
        starts = Uniform(problem_ids(self.config, "eval"), _EVAL_SEED).draw(self.config.eval.episodes)
        requests = [
            EpisodeRequest(group=i, seed=start.seed, options=start.options, sampling_seed=_seed(_EVAL_SEED, i))
            for i, start in enumerate(starts)
        ]
        with self._rollouts.evaluating():
            episodes = self._players["eval"].play(requests[self._ranks.rank :: self._ranks.size])
        gathered: list[Episode] = gather_object(episodes) if self._ranks.size > 1 else episodes
        if not self._ranks.rank:
            self._files.held_out(self.trl.state.global_step, gathered, beside=self._about("eval"))
        return metrics(gathered)

    def collect(self, step: int) -> Batch:
        """Return the batch that begins to train at a step, and write it down; called by the trainer."""
        batch = self._rollouts.collect(step)
        self._hooks.observe(batch.outcomes)
        if self._limits is not None:
            self.trl.sums.add("engine/in_flight", self._limits.in_flight.number, float(not self._ranks.rank))
        self._files.train(step + 1, batch.groups, batch.decisions, beside=self._about("train"))
        if not self._ranks.rank:
            self._samples.show(sampled(step + 1, batch.groups, batch.decisions))
        return batch

    def close(self) -> None:
        """Close the environments, the engine, and the connections to other processes."""
        self._rollouts.stop()
        self.collector.close()
        for player in self._players.values():
            player.close()
        self._policy.close()
        if self._stale is not None:
            self._stale.close()

    def _write_tokens(self, step: int, row: Row, member: int, logps: FloatArray | None) -> None:
        sampled_logps = np.array(row.logprobs)
        entry = TokensEntry(
            step=step,
            group=row.episode.group,
            member=member,
            prompt_ids=row.prompt_ids,
            completion_ids=row.completion_ids,
            mask=row.mask,
            logprobs=row.logprobs,
            advantages=np.broadcast_to(row.advantage, len(row.mask)).tolist(),
            shown_ids=row.episode.shown_ids,
            ratios=[] if logps is None else np.exp((logps - sampled_logps) * np.array(row.mask)).tolist(),
        )
        self._files.tokens([entry])

    def _save(self, folder: str) -> None:
        self.trl.save_model(folder)
        if not self._ranks.rank:
            self.tokenizer.save_pretrained(folder)
            self._files.event("saved", self.trl.state.global_step, path=Path(folder).name)

    def _log_evaluation(self, figures: dict[str, float]) -> None:
        self.trl.log_apart(figures)
        plain = {name.removeprefix("eval/"): value for name, value in figures.items()}
        self._files.event("evaluation", self.trl.state.global_step, figures=plain)

    def _write_cards(self) -> None:
        if not self._ranks.rank:
            write_cards(self._folder)

    def _begin(self) -> None:
        """Begin the run's folder, or go on with it, before any process writes to it."""
        resumed = None if self._checkpoint is None else step_of(self._checkpoint)
        self._ranks.wait()  # until every process has read what is there
        self._files.begin(self._record(), resumed=resumed, processes=self._ranks.size)
        if self._policy.cache is not None and not self._ranks.rank:
            self._files.event("note", resumed or 0, text=self._policy.cache.why)
        self._ranks.wait()

    def _record(self) -> dict[str, Any]:
        return {"trainer": self.name, **self.config.record()}

    def _find_checkpoint(self) -> Path | None:
        check_begun(self._folder, resume=self.config.run.resume)
        if self.config.run.resume:
            return checkpoint_to_resume(self._folder, self._record(), steps=self.config.run.steps)
        return None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what transformers warns about arguments that TRL itself sets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
