"""``train``: a stage of reinforcement learning with any recipe.

Each stage is a separate run. It starts from the given weights, which are also the reference model if the recipe uses
one. Its optimizer is new, or starts from the optimizer state of an earlier stage; in both cases, learning rate,
schedule and warm-up are those of this stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rstar2_env.core.files.json_lines import write_json
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.run_folder import layout, read_run

from ...api import find_recipe, layers_of, make_trainer
from ...hooks.criterion import read_criterion
from ...options.config import TrainConfig
from ...options.files import RUN_FILE
from ...options.layers import merged
from ...options.names import in_groups
from ...record.resume import MAY_CHANGE
from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..launched import run_launched
from ..places import HOME
from ..resuming import is_finished, newest_unfinished
from ..spread import spread_of

_EXACT: Mapping[str, Any] = {"run": {"export_dtype": "float32"}}
"""Default options of a stage: weights are exported in float32, since a later stage may continue training them."""
_NOT_LEARNED = tuple(name for name in MAY_CHANGE if name not in ("run.steps", "run.export_dtype"))


@dataclass(frozen=True)
class Train(CheckedOptions):
    """Train a model with a recipe, as ``rstar2 train`` does.

    Attributes:
        model: The initial model.
        optimizer: Run whose last optimizer state is loaded at the start (``STAGE.optimizer``); ``None`` for a new
            optimizer.
        recipe: Name or file of a recipe, as in ``rstar2 train``; empty if ``config`` names one.
        config: File with training options.
        problems: Training problems; ``None`` for the environment's own.
        held_out: Held-out problems; ``None`` for the environment's own.
        steps: Number of optimizer steps; ``None`` uses ``config`` or the recipe.
        launch: Command that launches the training in separate processes: ``"accelerate launch --config_file FILE"``,
            ``"torchrun ..."``, ``"rstar2 launch --serve 0-3 --train 4-7 --"``, or ``"python"``; ``None`` trains in the
            runner's process.
        until: Criterion that ends the stage before its last step: ``"eval/pass_rate >= 0.9"``.
        options: Further options of ``rstar2 train``, which override ``config``.
        seed: Seed of every random choice; ``None`` for the pipeline's seed.
    """

    model: str
    optimizer: str | None = None
    recipe: str = ""
    config: str | None = None
    problems: str | None = None
    held_out: str | None = None
    steps: int | None = option(None, least=1)
    launch: str | None = None
    until: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seed: int | None = option(None, least=0)

    inputs: ClassVar[Mapping[str, str]] = {
        "model": "model",
        "optimizer": "optimizer",
        "config": "config",
        "problems": "problems",
        "held_out": "problems",
    }

    @property
    def outputs(self) -> Mapping[str, Output]:
        """The last weights, the last optimizer state and, with evaluation on held-out problems, the best weights."""
        best = {"best": Output("model", "best")} if self._configured[1].eval.every else {}
        return {"model": Output("model", "final"), **best, "optimizer": Output("optimizer", if_taken=True)}

    @cached_property
    def _layers(self) -> tuple[str, list[Mapping[str, Any]]]:
        name, layers = layers_of(self.recipe or None, self.config)
        of_file = in_groups(find_recipe(name)[1])  # the layers override the options of a recipe's file
        exact = {} if "export_dtype" in of_file.get("run", {}) else _EXACT
        return name, [exact, *layers, *self.below(), self.options, *self._own()]

    @cached_property
    def _configured(self) -> tuple[str, TrainConfig]:
        recipe, of_file = find_recipe(self._layers[0])
        return recipe.name, recipe.configure(of_file, *self._layers[1])

    def below(self) -> list[Mapping[str, Any]]:
        """Return the default options of a subclass, which the user's options override; a plain ``Train`` has none."""
        return []

    def _own(self) -> list[Mapping[str, Any]]:
        """Return the training options that the stage's own fields set; they override ``options``."""
        own: dict[str, Any] = {"model": self.model}
        if self.optimizer is not None:
            own["optim"] = {"begin_from": self.optimizer}
        if self.steps is not None:
            own["steps"] = self.steps
        if self.problems is not None:
            own["env"] = {"problems": self.problems}
        if self.held_out is not None:
            own["eval"] = {"env": {"problems": self.held_out, "holdout": 0.0}}
        hooks = [] if self.until is None else [{"parts": {"hook": {"until": {"criterion": self.until}}}}]
        return [own, *hooks]

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        if self.until is not None:
            read_criterion(self.until)
        name, config = self._configured
        record = config.record()
        for dotted in (*_NOT_LEARNED, "run.seed", "model.path"):
            group, option = dotted.split(".")
            record[group].pop(option, None)
        if self.optimizer is not None:
            record["optim"].pop("begin_from")
        if self.problems is not None:
            record["rollout"]["env_options"].pop("problems", None)
        if self.held_out is not None:
            record["eval"]["env_options"].pop("problems", None)
        return {"trainer": name, **record}

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        return Cost.of_training(self._configured[1], about, spread_of(self.launch))

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        if not is_finished(work.folder):
            self._train(work)
        evaluations = read_run(work.folder).evaluations
        figures: dict[str, float | None] = {"steps": float(max(read_run(work.folder).steps, default=0))}
        if evaluations:
            figures["pass_rate_before"] = evaluations[0].figures.get("pass_rate")
            figures |= evaluations[-1].figures
        return figures

    def _train(self, work: Work) -> None:
        checkpoint = newest_unfinished(work.folder, self._ended_at(work.folder))
        resumed = checkpoint is not None
        if self.launch is not None:
            self._launch(self.launch, work, resumed=resumed)
            return
        name, layers = self._layers
        run = {"output_dir": str(work.folder), "seed": work.seed, "progress": work.progress}
        # Without a checkpoint, the run starts again from the beginning.
        trainer = make_trainer(name, *layers, merged(run, {"resume": resumed, "overwrite": not resumed}))
        try:
            trainer.train()
        finally:
            trainer.close()

    def _launch(self, launch: str, work: Work, *, resumed: bool) -> None:
        name, config = self._configured
        config.run.seed, config.run.progress = work.seed, work.progress
        # In the format of a run's own file of options, which contains all options and parts.
        file = work.folder.with_suffix(".launched") / RUN_FILE
        file.parent.mkdir(exist_ok=True)
        write_json(file, {"trainer": name, **config.record()})
        words = ["train", "--config", str(file), "--holdout", "0", "--out", str(work.folder)]
        run_launched(launch, [*words, "--resume" if resumed else "--overwrite"], work, HOME)

    def _ended_at(self, folder: Path) -> Any:
        if self.until is None or not (folder / layout.RUN_FILE).exists():
            return lambda step: False
        criterion, run = read_criterion(self.until), read_run(folder)
        met = {int(figures["step"]) for figures in run.metrics() if criterion.met(figures)}
        return lambda step: any(one <= step for one in met)


STAGES.register("train", Train)
