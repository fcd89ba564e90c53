"""``build_run``: builds a training run on TRL from the name of a recipe and the run's options.

The order matters: options are checked before a model is loaded, and copies of the model are made before the trainer
puts a fused head on it.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from transformers import PrinterCallback

from rstar2_env.core.files.outputs import begin_folder, list_files
from rstar2_env.core.progress import progress
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.core.run_folder.layout import CONFIG_FILE
from rstar2_env.rewards.judges import make_reward_judge

from ....options.config import TrainConfig, run_record
from ....options.parts import correction_of, make_parts
from ....options.record import shared_fields
from ....queue.adaptive_limit import adaptive
from ....record.resume import check_begun, checkpoint_to_resume
from ....step.batch import Batch
from ....step.collector import Collector
from ....step.collector_parts import StepOptions, StepServices
from ..arguments import quiet, run_arguments
from ..cpu_speed import chosen_together, most_tokens, recorded_precision, watches
from ..loss.forward import ReferenceModel
from ..loss.measuring import PolicyMeasurer
from ..loss.objective import Objective
from ..loss.pending_rows import BatchLayout
from ..loss.teacher import load_teacher
from ..model import codec, dtype_of, export_dtype_of, load_policy, processes, suggested_for
from ..players import env_factory, gold_answers, make_player, opening, problem_source
from ..ranks import AccelerateRanks, OwnRanks
from ..sharding.choice import chosen_sharding
from ..sharding.earlier_optimizer import checkpoint_to_carry
from ..sharding.zero import zero_arguments
from ..trainer import CollectorTrainer
from ..weight_sync.engine import PolicyEngine
from ..weight_sync.stale import StalePolicy, stale_copy
from .callbacks import Console, RunEvents
from .checks import check_config
from .hooks import HooksCallback
from .interrupt import Stopping
from .lengths import check_lengths
from .parts import LoadedPolicy, PlayParts, RunSetup
from .recorder import RunRecorder, write_tokens
from .rollouts import Rollouts
from .run import TrlRun
from .run_state import TrlRunState
from .sample_table import SampledEpisodes
from .training_state import TrainingState


def build_run(name: str, config: TrainConfig) -> TrlRun:
    """Build a training run on TRL.

    Args:
        name: Name of the recipe.
        config: Options of the run.

    Raises:
        ConfigurationError: The options contradict each other or do not fit the number of processes, the folder holds
            an earlier run and ``resume`` is off, or the optimizer state named by ``optim.begin_from`` does not fit.
    """
    setup = prepare(name, config)
    policy = load(setup)
    files = RunWriter(
        setup.folder, rank=setup.ranks.rank, episodes=config.run.keep_episodes, tokens=config.run.keep_tokens
    )
    console = Console(name, files, visible=config.run.progress)
    ranks = setup.ranks
    stopping = Stopping(setup.folder, ranks)
    trainer = build_trainer(setup, policy, files)
    trainer.add_callback(console)
    play = build_play(setup, policy, trainer)
    recorder = RunRecorder(setup, files, trainer, policy.tokenizer, play.problems)
    state = TrlRunState(
        trainer,
        play.train,
        play.chat,
        make_env=lambda overriding: env_factory(config, "train", overriding),
        terms=setup.parts.term_names,
        on_new_weights=play.policy.mark_stale,
        on_note=lambda step, text: files.event("note", step, text=text),
        openings=lambda: {
            "train": opening(config, "train", play.train.chat),
            "eval": opening(config, "eval", play.chat),
        },
        evaluates=bool(config.eval.every),
        follow=setup.parts.follow,
        check_parts=setup.parts.check,
    )
    hooks = HooksCallback(setup.parts.hooks, state)
    if not ranks.rank:
        files.told = hooks.wrote
    samples = SampledEpisodes(config.run.report_to, trainer.callback_handler.callbacks)

    def show_samples(step: int, batch: Batch) -> None:
        if not ranks.rank:
            samples.show(step + 1, batch.groups, batch.decisions)

    observers = [lambda step, batch: hooks.observe(batch.results), recorder.write_batch, show_samples]
    rollouts = Rollouts(setup, trainer, play, state=state, stopping=stopping, observers=observers)
    trainer.collector = rollouts
    trainer.keep_state("collector", rollouts)
    trainer.keep_state("hooks", hooks)
    events = RunEvents(files, rollouts.state_dict, lambda: trainer.sharing.note)
    watched = TrainingState(trainer.sums)
    for callback in (events, watched, samples, stopping, hooks, *watches(setup.choice, visible=config.run.progress)):
        trainer.add_callback(callback)
    return TrlRun(setup, trainer, play, rollouts, recorder, console, stopping)


def prepare(name: str, config: TrainConfig) -> RunSetup:
    """Check the options of a run, connect its processes and make its parts, before a model is loaded.

    Args:
        name: Name of the recipe.
        config: Options of the run.

    Raises:
        ConfigurationError: See ``build_run``.
    """
    check_config(config)
    config.parts.correction = correction_of(config)  # so that the run's record names the part that "auto" selected
    sharding = chosen_sharding(config.run.sharding)
    folder, resume = Path(config.run.output_dir), config.run.resume
    ranks = AccelerateRanks(processes(config.run.process_timeout_s))
    check_begun(folder, resume=resume, overwrite=config.run.overwrite)
    # A precision that is measured replaces "auto" in the run's record, so that a resumed run computes in the same.
    earlier = recorded_precision(folder / CONFIG_FILE, "model", "dtype") if resume else None
    choice = chosen_together(config.model, config.run.threads, ranks, earlier=earlier)
    checkpoint = begin_from = None
    if resume:
        checkpoint = checkpoint_to_resume(folder, run_record(name, config), steps=config.run.steps)
    if checkpoint is None and config.optim.begin_from is not None:
        begin_from = checkpoint_to_carry(config.optim.begin_from)
    return RunSetup(name, config, make_parts(config), sharding, ranks, checkpoint, begin_from, choice)


def load(setup: RunSetup) -> LoadedPolicy:
    """Prepare the run's folder, load the policy, and copy it if the rollout part needs older weights."""
    config = setup.config
    setup.ranks.wait()  # until every process has read the folder
    if not setup.ranks.rank:
        begin_folder(setup.folder, "training", resume=setup.checkpoint is not None)
        list_files(setup.folder, folders={"runs": None})  # TensorBoard's
    with progress("loading the model"):
        model, tokenizer = load_policy(config.model, setup.folder, seed=config.run.seed, waits=setup.waits)
    copy = stale_copy(config, setup.parts.rollout, model, dtype_of(config.model), divided=setup.divided)
    return LoadedPolicy(model, tokenizer, copy)


def build_trainer(setup: RunSetup, policy: LoadedPolicy, files: RunWriter) -> CollectorTrainer:
    """Build the trainer with its loss, its reference model and its teacher; its collector is set later.

    Args:
        setup: The setup of the run.
        policy: The loaded policy.
        files: Writes the tokens of rows that were trained on, if the run keeps these tokens.
    """
    config, parts = setup.config, setup.parts
    objective = Objective(parts.terms, parts.aggregation, parts.correction)
    reference, autocasts = None, setup.sharding == "none"
    if "reference" in objective.needs:
        temperature = config.rollout.temperature
        reference = ReferenceModel(policy.model, dtype_of(config.model), temperature, autocasts=autocasts)
    teacher = load_teacher(
        config,
        policy.model,
        policy.tokenizer,
        objective.needs,
        given="teacher" in parts.rollout.columns,
        autocasts=autocasts,
        waits=setup.waits,
    )
    with quiet():
        trainer = CollectorTrainer(
            objective=objective,
            shape=BatchLayout(
                min(config.optim.tokens_per_device, most_tokens(policy.model, config.model) or sys.maxsize),
                passes=config.optim.updates_per_rollout,
                minibatches=config.optim.minibatches,
                seed=config.run.seed,
                share_prefixes=config.optim.share_prefixes,
            ),
            reference=reference,
            teacher=teacher,
            sharding=setup.sharding,
            export_dtype=export_dtype_of(config),
            begin_from=setup.begin_from,
            keep_checkpoints=config.run.keep_checkpoints,
            on_trained=partial(write_tokens, files) if config.run.keep_tokens else None,
            model=policy.model,
            processing_class=policy.tokenizer,
            args=run_arguments(
                config,
                suggested_for(policy.model, config.model),
                **zero_arguments(setup.sharding, setup.ranks.size),
            ),
        )
    trainer.remove_callback(PrinterCallback)
    return trainer


def build_play(setup: RunSetup, policy: LoadedPolicy, trainer: CollectorTrainer) -> PlayParts:
    """Build the engines, the players and the collector.

    Args:
        setup: The setup of the run.
        policy: The loaded policy.
        trainer: The trainer; the engines generate with its policy.
    """
    config, parts, tokenizer = setup.config, setup.parts, policy.tokenizer
    with progress(f"starting the engine {config.rollout.engine}"):
        engine = PolicyEngine(config, trainer, tokenizer)
    stale = None
    if parts.rollout.older_weights is not None:
        stale = StalePolicy(config, trainer, tokenizer, parts.rollout.older_weights, policy.stale_copy)
    chat = codec(config.model, tokenizer, policy.model)
    check_lengths(config, engine.engine, chat, getattr(policy.model.config, "max_position_embeddings", None))
    # A codec of its own: this player may run in another thread, and a codec caches what it has rendered.
    train_chat = codec(config.model, tokenizer, policy.model)
    player = make_player(
        config, "train", engine.engine, train_chat, stale_engine=None if stale is None else stale.engine
    )
    evaluation = make_player(config, "eval", engine.engine, chat)
    measuring = PolicyMeasurer(
        trainer,
        encode=chat.plain,
        answer=gold_answers(config) if "answer" in getattr(parts.advantage, "needs", ()) else None,
        temperature=lambda: player.sampling.temperature,
        prepare=engine.free_memory,
    )
    limits = None
    if config.rollout.adaptive_in_flight:
        limits = adaptive(
            engine.engine,
            config.rollout.engine,
            longest=config.rollout.max_episode_tokens,
            most=config.rollout.max_in_flight,
            processes=setup.ranks.size,
        )
    problems = problem_source(config, "train")
    rollout, seed, timeout_s = config.rollout, config.run.seed, config.run.process_timeout_s
    ahead = rollout.max_staleness > 0  # then the collector's thread needs process groups of its own
    options = StepOptions(
        **shared_fields(StepOptions, rollout), seed=seed, spare=rollout.spare_groups, timeout_s=timeout_s
    )
    services = StepServices(
        player,
        parts.sampler_factory(problems, seed),
        ranks=OwnRanks(processes(), timeout_s=timeout_s) if ahead else setup.ranks,
        limits=limits,
        judge=None if rollout.judge is None else make_reward_judge(rollout.judge),
        measure=measuring,
        problems=problems,
    )
    collector = Collector(parts, options, services)
    return PlayParts(engine, stale, player, evaluation, chat, problems, limits, measuring, collector)
