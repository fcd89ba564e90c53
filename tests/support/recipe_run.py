"""A short run of a recipe in a small world, which a script plays; see ``scripted_policy``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_policy import WORLDS, World, engine_kind

from rstar2_env import trainers
from rstar2_env.rollout.engines.registry import ENGINES
from rstar2_env.trainers import TrainResult


def train_recipe(recipe: str, world: str | World, model: Path, folder: Path, **options: Any) -> TrainResult:
    """Train for a few steps of two groups of four.

    Args:
        recipe: Its name.
        world: One of ``WORLDS``, or another.
        model: Folder of the model.
        folder: Of the run.
        **options: Of the run; ``steps`` is 2 if it is not among them.
    """
    played = WORLDS[world] if isinstance(world, str) else world
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENGINES._parts, "scripted", engine_kind(played.script))
        trainer = trainers.make(
            recipe,
            **{
                "model": str(model),
                "env": played.env,
                "env_options": dict(played.options),
                "engine": "scripted",
                "output_dir": str(folder),
                "steps": 2,
                "problems_per_step": 2,
                "group_size": 4,
                "max_episode_tokens": played.tokens,
                "learning_rate": 1e-3,
                "save_every": 0,
                "threads": 1,
                "progress": False,
                **options,
            },
        )
        try:
            return trainer.train()
        finally:
            trainer.close()
