"""A run with hooks whose rows are given, and whose player, chat and engine are real."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from letter_env import LetterEnv
from row_trainer import row_trainer
from training_rows import few_rows

from rstar2_env.core.episode import Episode
from rstar2_env.rollout import Budget, ChatCodec, EpisodeRequest, Player, SamplingParams, TransformersEngine
from rstar2_env.trainers.backends.trl.loss.forward import ReferenceModel
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.run.hooks import HooksCallback
from rstar2_env.trainers.backends.trl.run.run_state import TrlRunState
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection
from rstar2_env.trainers.losses.kl import Kl
from rstar2_env.trainers.losses.ppo_clip import PpoClip

SAYS = [{"role": "user", "content": "Say a letter. 3"}, {"role": "assistant", "content": "q"}]
"""A conversation of one turn."""


@dataclass
class HookedRun:
    """The run, and its parts."""

    trainer: Any
    followed: Any
    state: TrlRunState
    player: Player
    hooks: HooksCallback
    new_weights: list[int]

    def play(self, count: int = 6) -> list[Episode]:
        """Episodes as the next rollout would play them."""
        self.state.begin_rollout()
        requests = [EpisodeRequest(group=0, seed=1, sampling_seed=seed) for seed in range(count)]
        return self.player.play(requests)

    def logp(self, conversation: Any) -> torch.Tensor:
        """Log-probability of each of the policy's tokens, by a plain forward pass."""
        row = self.state._row(conversation)
        ids = torch.tensor([[*row.prompt_ids, *row.completion_ids]])
        mask = [0] * len(row.prompt_ids) + row.mask
        with torch.no_grad():
            logits = self.trainer.model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        each: torch.Tensor = logits.gather(1, ids[0, 1:, None])[:, 0]
        return each[torch.tensor(mask[1:], dtype=torch.bool)]


def hooked_run(
    model: str | Path,
    folder: str | Path,
    *hooks: Any,
    steps: int = 2,
    coef: float = 0.1,
    rows: Any = None,
    terms: Any = None,
    **options: Any,
) -> HookedRun:
    """Make a run.

    Args:
        model: Folder of the model.
        folder: The run's folder.
        *hooks: Its hooks.
        steps: Its optimizer steps.
        coef: Coefficient of the KL term.
        rows: The rows of every rollout.
        terms: Terms of the loss, the surrogate and a KL term if not given.
        **options: Of ``row_trainer``.
    """
    terms = terms if terms is not None else [PpoClip(), Kl(coef=coef)]
    reference = any("reference" in term.needs for term in terms)
    trainer, followed = row_trainer(
        model,
        folder,
        [rows or few_rows()] * steps,
        objective=Objective(terms, TokenMean(), NoCorrection()),
        reference=(lambda policy: ReferenceModel(policy, torch.float32, 1.0)) if reference else None,
        **options,
    )
    chat = ChatCodec(trainer.processing_class)  # type: ignore[arg-type, unused-ignore]
    player = Player(
        LetterEnv,
        TransformersEngine(trainer.model, trainer.processing_class),  # type: ignore[arg-type, unused-ignore]
        chat,
        sampling=SamplingParams(max_tokens=1, temperature=1.0),
        budget=Budget(tokens=200, turn_tokens=4),
    )
    new_weights: list[int] = []
    state = TrlRunState(
        trainer,
        player,
        chat,
        make_env=lambda options: partial(LetterEnv, **options),
        terms=["ppo_clip", "kl", "kl"][: len(terms)],
        on_new_weights=lambda: new_weights.append(1),
        evaluates=True,
    )
    called = HooksCallback(hooks, state)
    trainer.add_callback(called)
    trainer.keep_state("hooks", called)
    return HookedRun(trainer, followed, state, player, called, new_weights)
