"""``Teacher``: a frozen model whose log-probabilities of the policy's own tokens a term of the loss needs.

It is another model with the same tokenizer, or the policy as the run began with it, and it may read more than the
policy did: the answer, a solution. It is placed and divided among processes as the reference model is. Not covered:
teachers behind a server, or with another tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import Row
from rstar2_env.problems import Problem, ProblemSource
from rstar2_env.rollout import ChatCodec

from ....options.config import TrainConfig
from ..adapters import Policy
from ..model import codec, dtype_of, load_tokenizer, pretrained
from ..players import problem_source
from .forward import Autocast, Reference
from .micro_batches import MicroBatch, taken_out

SELF = "self"
Look = Callable[[Sequence[Row], Callable[[Any, MicroBatch], Tensor]], "list[tuple[MicroBatch, Tensor]]"]


class Teacher(Reference):
    """A frozen model that is asked about every row of a rollout.

    Args:
        model: The model; ``None`` where it is the policy without the new adapters that the trainer puts on it.
        dtype: Precision of its weights.
        temperature: Temperature of the log-probabilities.
        told: The prompt that it reads in place of a row's; ``None`` is the row's own.
        copied: See ``Reference``.
    """

    def __init__(
        self,
        model: Policy | None,
        dtype: torch.dtype,
        temperature: float,
        *,
        told: Callable[[Row], list[int]] | None = None,
        copied: bool = True,
    ) -> None:
        super().__init__(model, dtype, temperature, copied=copied)
        self._told = told

    def teach(self, rows: Sequence[Row], look: Look, autocast: Autocast) -> None:
        """Give every row the column ``teacher``: the log-probability of each completion token; all processes call.

        Args:
            rows: The rows of this process.
            look: Computes something of rows in micro-batches.
            autocast: Precision of the computation.
        """
        told = self._told
        seen = list(rows) if told is None else [replace(row, prompt_ids=told(row)) for row in rows]
        for batch, logp in look(seen, lambda model, batch: self.score(model, batch, autocast)):
            for place, values in zip(batch.rows, taken_out(logp, batch, seen), strict=True):
                rows[place].columns["teacher"] = values


class Told:
    """Prompts that say more than the policy was told: what a problem's answer is, or how it is solved.

    Args:
        template: What follows the user's message; ``{answer}`` and fields of ``Problem.meta`` are filled in.
        problems: The problems.
        chat: Renders the prompt.
    """

    def __init__(self, template: str, problems: ProblemSource, chat: ChatCodec) -> None:
        self._template, self._problems, self._chat = template, problems, chat

    def __call__(self, row: Row) -> list[int]:
        """The prompt of a row with the text after the user's first message.

        Raises:
            ConfigurationError: The problem lacks a field, or the row's prompt does not begin with the episode's.
        """
        episode = row.episode
        after = row.prompt_ids[len(episode.prompt_ids) :]
        if row.prompt_ids[: len(episode.prompt_ids)] != episode.prompt_ids:
            raise ConfigurationError(
                "model.teacher_prompt needs rows that begin with the prompt of their episode; the rollout part of this "
                "run gives rows prompts of their own.",
                option="model.teacher_prompt",
            )
        opening = [one for one in episode.messages[:2] if one.role != "assistant"]
        system = next((one.content for one in opening if one.role == "system"), "")
        text = next((one.content for one in opening if one.role != "system"), "")
        return self._chat.prompt(system, text + self.text(self._problems.get(episode.problem_id))) + after

    def text(self, problem: Problem) -> str:
        """What is told of a problem.

        Raises:
            ConfigurationError: The problem has no such field.
        """
        fields = {**problem.meta, "answer": problem.answer, "question": problem.question}
        try:
            return self._template.format_map(fields)
        except (KeyError, IndexError, ValueError) as error:
            raise ConfigurationError(
                f"model.teacher_prompt asks for {error}, and the problem {problem.id!r} has "
                f"{', '.join(sorted(fields))}: name one of these in braces.",
                option="model.teacher_prompt",
            ) from error


def load_teacher(
    config: TrainConfig,
    policy: Policy,
    tokenizer: PreTrainedTokenizerBase,
    needs: Collection[str],
    *,
    given: bool = False,
    waits: bool = False,
) -> Teacher | None:
    """Load the teacher that the options name; ``None`` without one.

    Args:
        config: Options of the run.
        policy: The policy before training.
        tokenizer: The policy's.
        needs: Of the loss.
        given: Whether rows may get the column ``teacher`` without one, from the rollout part.
        waits: As of ``load_policy``.

    Raises:
        ConfigurationError: It cannot be loaded, has another tokenizer, no term of the loss needs it, or one does and
            none is named.
    """
    name, template = config.model.teacher, config.model.teacher_prompt
    if name is None:
        if template is not None:
            raise ConfigurationError("teacher_prompt is for a teacher: name one.", option="model.teacher")
        if "teacher" in needs and not given:
            raise ConfigurationError(
                "A term of the loss asks a teacher, and none is named: set it to the folder of a model with the same "
                "tokenizer, or to 'self', the model that the run begins with.",
                option="model.teacher",
            )
        return None
    if "teacher" not in needs:
        raise ConfigurationError(
            "No term of the loss asks a teacher: leave model.teacher out, or add a term that does (kdrl, opd).",
            option="model.teacher",
        )
    told = None
    if template is not None:
        problems = problem_source(config, "train")
        if problems is None:
            raise ConfigurationError(
                "teacher_prompt tells the teacher about problems, and the environment has no source of problems: "
                "choose one that has, such as rstar2/MathTool-v0, or leave it out.",
                option="model.teacher_prompt",
            )
        told = Told(template, problems, codec(config.model, tokenizer, policy))
    dtype, temperature = dtype_of(config.model), config.rollout.temperature
    if name == SELF:
        return Teacher(policy, dtype, temperature, told=told)
    check_same(tokenizer, load_tokenizer(name, config.model), name)
    return Teacher(_loaded(name, config, dtype, waits=waits), dtype, temperature, told=told, copied=False)


def check_same(own: PreTrainedTokenizerBase, other: PreTrainedTokenizerBase, name: str) -> None:
    """Check that two tokenizers give every token the same id.

    Args:
        own: The policy's.
        other: The teacher's.
        name: The teacher's name.

    Raises:
        ConfigurationError: They do not.
    """
    ours, theirs = own.get_vocab(), other.get_vocab()
    apart = [token for token in ours if theirs.get(token) != ours[token]] + [one for one in theirs if one not in ours]
    if apart:
        raise ConfigurationError(
            f"The teacher {name!r} has another tokenizer than the policy: {len(apart)} of {len(ours | theirs)} tokens "
            f"differ, such as {apart[0]!r}. The policy's tokens are given to it as they are: take a teacher of the "
            "same family, whose vocabulary is the same.",
            option="model.teacher",
        )


def _loaded(name: str, config: TrainConfig, dtype: torch.dtype, *, waits: bool) -> PreTrainedModel:
    try:
        return pretrained(name, config.model, dtype, waits=waits)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigurationError(f"The teacher {name!r} cannot be loaded: {error}", option="model.teacher") from error
