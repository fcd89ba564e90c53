"""``Teacher``: a frozen model that scores the policy's tokens for a term of the loss.

The teacher is another model with the same tokenizer, or the initial policy. Its prompt may contain information that the
policy lacks, such as the answer or a solution. The teacher is placed and sharded like the reference model. Not covered:
teachers behind a server, or with another tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import Row
from rstar2_env.problems import Problem, ProblemSource
from rstar2_env.rollout import ChatCodec

from ....options.config import TrainConfig
from ..adapters import PolicyModel
from ..model import codec, dtype_of, load_model, load_tokenizer
from ..players import problem_source
from .forward import Autocast, ReferenceModel
from .micro_batches import MicroBatch, completion_values

SELF = "self"
ScoreTeacherRows = Callable[[Sequence[Row], Callable[[Any, MicroBatch], Tensor]], "list[tuple[MicroBatch, Tensor]]"]


class Teacher(ReferenceModel):
    """A frozen model that scores every row of a rollout.

    Args:
        model: The model; ``None`` means the policy without the trainer's adapters.
        dtype: Precision of the teacher's weights.
        temperature: Temperature of the log-probabilities.
        prompt: Returns the teacher's prompt for a row; ``None`` keeps the row's prompt.
        autocasts: See ``ReferenceModel``.
        copied: See ``ReferenceModel``.
    """

    def __init__(
        self,
        model: PolicyModel | None,
        dtype: torch.dtype,
        temperature: float,
        *,
        prompt: Callable[[Row], list[int]] | None = None,
        autocasts: bool = False,
        copied: bool = True,
    ) -> None:
        super().__init__(model, dtype, temperature, autocasts=autocasts, copied=copied)
        self._prompt = prompt

    def add_column(self, rows: Sequence[Row], score_rows: ScoreTeacherRows, autocast: Autocast) -> None:
        """Add the column ``teacher`` to every row: the teacher's log-probability of each completion token.

        All processes call it.

        Args:
            rows: The rows of this process.
            score_rows: Scores rows in micro-batches.
            autocast: Returns a context that sets the precision of the computation.
        """
        prompt = self._prompt
        seen = list(rows) if prompt is None else [replace(row, prompt_ids=prompt(row)) for row in rows]
        for batch, logp in score_rows(seen, lambda model, batch: self.score(model, batch, autocast)):
            for place, values in zip(batch.rows, completion_values(logp, batch, seen), strict=True):
                rows[place].columns["teacher"] = values


class PrivilegedPrompt:
    """Builds prompts for the teacher, with information that the policy lacks: a problem's answer or its solution.

    Args:
        template: Text after the user's message; ``{answer}`` and fields of ``Problem.meta`` are filled in.
        problems: Source of the problems whose fields are filled in.
        chat: Renders the prompt.
    """

    def __init__(self, template: str, problems: ProblemSource, chat: ChatCodec) -> None:
        self._template, self._problems, self._chat = template, problems, chat

    def __call__(self, row: Row) -> list[int]:
        """Return the teacher's prompt for a row: the filled-in template is appended to the user's first message.

        Raises:
            ConfigurationError: The problem lacks a field, or the row's prompt does not begin with the episode's prompt.
        """
        episode = row.episode
        after = row.prompt_ids[len(episode.prompt_ids) :]
        if row.prompt_ids[: len(episode.prompt_ids)] != episode.prompt_ids:
            raise ConfigurationError(
                "model.teacher_prompt replaces the prompt of an episode, but the rollout part of this "
                "run makes rows with other prompts: remove model.teacher_prompt, or use another rollout "
                "part.",
                option="model.teacher_prompt",
            )
        opening = [one for one in episode.messages[:2] if one.role != "assistant"]
        system = next((one.content for one in opening if one.role == "system"), "")
        text = next((one.content for one in opening if one.role != "system"), "")
        return self._chat.prompt(system, text + self.text(self._problems.get(episode.problem_id))) + after

    def text(self, problem: Problem) -> str:
        """Return the text that is added for a problem.

        Raises:
            ConfigurationError: The problem lacks a field of the template.
        """
        fields = {**problem.meta, "answer": problem.answer, "question": problem.question}
        try:
            return self._template.format_map(fields)
        except (KeyError, IndexError, ValueError) as error:
            raise ConfigurationError(
                f"model.teacher_prompt cannot be filled in ({error}): the problem {problem.id!r} has only "
                f"the fields {', '.join(sorted(fields))}: name one of these in braces.",
                option="model.teacher_prompt",
            ) from error


def load_teacher(
    config: TrainConfig,
    policy: PolicyModel,
    tokenizer: PreTrainedTokenizerBase,
    needs: Collection[str],
    *,
    given: bool = False,
    autocasts: bool = False,
    waits: bool = False,
) -> Teacher | None:
    """Load the teacher that the options name; return ``None`` if they name none.

    Args:
        config: Options of the run.
        policy: The policy before training.
        tokenizer: The policy's tokenizer.
        needs: Names of the inputs that the loss terms and the correction need.
        given: Whether the rollout part adds the column ``teacher`` to rows.
        autocasts: See ``ReferenceModel``.
        waits: See ``load_policy``.

    Raises:
        ConfigurationError: The teacher cannot be loaded, has another tokenizer, or is not needed by any term of the
            loss; or a term needs a teacher and the options name none.
    """
    name, template = config.model.teacher, config.model.teacher_prompt
    if name is None:
        if template is not None:
            raise ConfigurationError(
                "model.teacher_prompt is the prompt of a teacher model, but no teacher is set: set model.teacher.",
                option="model.teacher",
            )
        if "teacher" in needs and not given:
            raise ConfigurationError(
                "A term of the loss needs a teacher model: set model.teacher to the folder of a model "
                "with the same tokenizer, or to 'self', the model with which the run starts.",
                option="model.teacher",
            )
        return None
    if "teacher" not in needs:
        raise ConfigurationError(
            "model.teacher is set, but no term of the loss uses a teacher model: remove model.teacher, "
            "or add a term that uses it (kdrl, opd).",
            option="model.teacher",
        )
    prompt = None
    if template is not None:
        problems = problem_source(config, "train")
        if problems is None:
            raise ConfigurationError(
                "model.teacher_prompt contains fields of problems, but the environment does not have a "
                "source of problems: choose an environment that has one, such as rstar2/MathTool-v0, or "
                "remove model.teacher_prompt.",
                option="model.teacher_prompt",
            )
        prompt = PrivilegedPrompt(template, problems, codec(config.model, tokenizer, policy))
    dtype, temperature = dtype_of(config.model), config.rollout.temperature
    if name == SELF:
        return Teacher(policy, dtype, temperature, prompt=prompt, autocasts=autocasts)
    check_same(tokenizer, load_tokenizer(name, config.model), name)
    model = load_model(name, config.model, dtype, waits=waits, role="teacher")
    return Teacher(model, dtype, temperature, prompt=prompt, copied=False)


def check_same(own: PreTrainedTokenizerBase, other: PreTrainedTokenizerBase, name: str) -> None:
    """Check that two tokenizers give every token the same id.

    Args:
        own: The policy's tokenizer.
        other: The teacher's tokenizer.
        name: The teacher's name.

    Raises:
        ConfigurationError: The tokenizers differ.
    """
    ours, theirs = own.get_vocab(), other.get_vocab()
    differ = [token for token in ours | theirs if theirs.get(token) != ours.get(token)]
    if differ:
        raise ConfigurationError(
            f"The teacher model {name!r} has a different tokenizer from the model that is trained: "
            f"{len(differ)} of {len(ours | theirs)} tokens differ, such as {differ[0]!r}. Both models "
            "must have the same token ids, so choose a teacher of the same family with the same "
            "vocabulary.",
            option="model.teacher",
        )
