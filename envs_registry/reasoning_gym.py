"""``rstar2/ReasoningGym-v0``: every generator of reasoning-gym as an environment, if this package is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, UnknownNameError
from rstar2_env.env.vector import vector_entry_point
from rstar2_env.problems import Draft, ProceduralSource
from rstar2_env.tools.by_name import ToolChoice

from ._adapted import AdaptedEnv, Grade

_FULL = 1 - 1e-9


@dataclass(frozen=True)
class _Draw:
    dataset: str
    config: tuple[tuple[str, Any], ...]

    def __call__(self, rng: np.random.Generator, /) -> Draft:
        # Every instance is a data set of size 1 with its own seed: reasoning-gym seeds item i with seed + i, so larger
        # data sets with neighbouring seeds would have almost the same items.
        seed = int(rng.integers(2**62))
        _, entry = self.item(seed)
        return Draft(str(entry["question"]), str(entry.get("answer") or ""), str(entry["question"]), {"seed": seed})

    def item(self, seed: int) -> tuple[Any, dict[str, Any]]:
        """Create a data set with a single item; return the data set and its item."""
        create = _package().create_dataset
        try:
            dataset = create(self.dataset, seed=seed, size=1, **dict(self.config))
            return dataset, dataset[0]
        except ValueError:
            # A few generators use NumPy's legacy seeding, which takes 32 bits.
            dataset = create(self.dataset, seed=seed % 2**32, size=1, **dict(self.config))
            return dataset, dataset[0]


class ReasoningGymEnv(AdaptedEnv):
    r"""One instance of a reasoning-gym data set, answered in a turn without a tool call.

    ## Action space
    Any string: the policy's whole turn. The dialect reads the answer (``\boxed{}`` in ``<answer>``). If the last
    ``<answer>`` has no box, as is common for answers of several lines, its whole content is the answer.

    ## Observation space
    Any string: the question.

    ## Reward
    1 if reasoning-gym's ``score_answer`` gives the full score (``correct`` is then true), else 0. With
    ``partial_scores=True`` the score itself, from 0 to 1; many generators give a partial score to any text that
    contains the right answer, even among wrong answers. If the scorer raises an exception the reward is 0, and
    ``verifier_error`` names the exception.

    ## Episode end
    As in ``rstar2/Bootcamp-v0``.

    ## Information
    As in ``rstar2/Bootcamp-v0``.

    ## Difficulty
    The generator and its ``config`` define the difficulty. Of the 106 generators of reasoning-gym 0.1.25, 100 have
    reference answers that earn 1.0; five have no reference answers (``boxnet``, ``graph_color``,
    ``propositional_logic``, ``rubiks_cube``, ``rush_hour``), and ``composite`` needs a ``config``.

    ## Version history
    v0: first version.

    Args:
        dataset: Name of the generator ("leg_counting", "sudoku", ...).
        config: Options of the generator, as for ``reasoning_gym.create_dataset``, without ``seed`` and ``size``.
        partial_scores: Use reasoning-gym's partial scores as the reward.
        split: "train", "validation" or "test"; a hash of the question decides to which split it belongs.
        tools: Tools that the policy may call before it answers: ``Tool`` objects, the name ``"python"``, or an MCP
            server (``mcp:./server.py``).
        **options: Arguments of ``ToolEnv``: ``max_turns``, ``dialect``, ...

    Raises:
        MissingExtraError: reasoning-gym is not installed.
        UnknownNameError: reasoning-gym has no generator of that name.
        ConfigurationError: The generator refuses the config.
    """

    def __init__(
        self,
        *,
        dataset: str = "leg_counting",
        config: Mapping[str, Any] | None = None,
        partial_scores: bool = False,
        split: str = "train",
        tools: Sequence[ToolChoice] = (),
        **options: Any,
    ) -> None:
        known = _package().factory.DATASETS
        if dataset not in known:
            raise UnknownNameError("generator of reasoning-gym", dataset, known)
        self._partial = partial_scores
        self._draw = _Draw(dataset, tuple(sorted((config or {}).items())))
        try:
            self._draw.item(0)
        except (AssertionError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"reasoning-gym's {dataset} refuses the config {dict(config or {})}: {error}"
            ) from error
        written = ",".join(f"{key}={value}" for key, value in self._draw.config)
        name = f"reasoning_gym/{dataset}" + (f":{written}" if written else "")
        super().__init__(ProceduralSource(name, self._draw, split), tools=tools, options=options)

    def grade(self, turn: str) -> Grade:
        """Score the answer with reasoning-gym."""
        answer = self.dialect.answer([turn])
        if answer is None and (close := turn.rfind("</answer>")) >= 0:
            start = turn.rfind("<answer>", 0, close)
            answer = turn[start + len("<answer>") : close].strip() if start >= 0 else None
        if answer is None:
            return Grade(None, 0.0, False)
        dataset, entry = self._draw.item(int(self.problem.meta["seed"]))
        score = float(dataset.score_answer(answer, entry))
        correct = score >= _FULL
        return Grade(answer, score if self._partial else float(correct), correct)


def _package() -> Any:
    try:
        return importlib.import_module("reasoning_gym")
    except ImportError as error:
        raise MissingExtraError("reasoning-gym", "rstar2/ReasoningGym-v0") from error


if importlib.util.find_spec("reasoning_gym") is not None:
    gym.register(
        "rstar2/ReasoningGym-v0",
        entry_point="rstar2_env.envs_registry.reasoning_gym:ReasoningGymEnv",
        vector_entry_point=vector_entry_point("rstar2/ReasoningGym-v0"),
    )
