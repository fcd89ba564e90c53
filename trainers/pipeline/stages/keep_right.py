"""``keep_right``: selects correct episodes for expert iteration, without uninformative or misleading turns.

BFS-Prover-V2 (arXiv 2509.06493) samples from the current expert, keeps the episodes that found a proof, and filters
them by the expert's own perplexity of each tactic (here, of each turn):

    perplexity(turn) = exp(-mean of log p over its tokens)

Turns with a very low perplexity are predictable for the expert; turns with a very high perplexity are noise that did
not change the outcome. Let N be the number of turns in all kept episodes. The floor(N * drop_low) turns with the lowest
and the floor(N * drop_high) turns with the highest perplexity remain as context and are not trained on. For each
problem, the correct episodes with the best path scores are kept. The path score is that of the paper's best-first
search, where log p(turn) is the sum of log p over the turn's tokens and L is the number of the episode's turns:

    score = (sum over turns of log p(turn)) / L^alpha

Examples: episode A has one turn with log p = -2, and episode B has two turns with -1 and -3. The score of A is always
-2; the score of B is -4 with alpha 0, -2 with alpha 1, and -1 with alpha 2. Of ten turns with the perplexities 1, 2,
..., 10, the default trains on those with 2 to 9. The paper drops both tails; their shares, ``alpha`` and
``per_problem`` are this package's choices. A conversation that occurs several times is kept once. Not covered: the
paper's proof search; any episodes of a model can be used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option
from rstar2_env.core.run_folder import read_run
from rstar2_env.traces.reading import read_traces

from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..likelihood import EngineStage
from ..traces import write_traces

FILE = "traces.jsonl"


@dataclass(frozen=True, kw_only=True)
class KeepRight(EngineStage):
    """Write correct episodes as traces, filtered by the perplexity of their turns (BFS-Prover-V2, arXiv 2509.06493).

    Attributes:
        episodes: Folder of the evaluation whose correct episodes are selected.
        model: The model that played the episodes; it computes the perplexity.
        earlier: Earlier traces to include, such as the traces of the previous round or of a cold start.
        drop_low: Share of the turns that are not trained on because their perplexity is lowest.
        drop_high: Share of the turns that are not trained on because their perplexity is highest.
        per_problem: Maximum number of correct episodes per problem; those with the best path scores are kept.
        alpha: Exponent of the number of turns in ``path_score``; 0 prefers episodes with few turns, 1 uses the mean of
            the turns' log-probabilities.
        engine: The engine that scores.
        engine_options: Options of the engine.
        model_options: Options for loading the model, as in ``rstar2 eval``.
    """

    episodes: str
    model: str
    earlier: str | list[str] | None = None
    drop_low: float = option(0.1, least=0, below=1)
    drop_high: float = option(0.1, least=0, below=1)
    per_problem: int = option(1, least=1)
    alpha: float = option(0.5, least=0)

    inputs: ClassVar[Mapping[str, str]] = {"episodes": "episodes", "model": "model", "earlier": "traces"}
    outputs: ClassVar[Mapping[str, Output]] = {"traces": Output("traces", FILE)}

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        if self.drop_low + self.drop_high >= 1:
            raise ConfigurationError(
                "The sum of the options drop_low and drop_high must be less than 1; otherwise no episodes are left."
            )
        return super().resolved()

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        return Cost(notes=["the number of correct episodes is not known"])

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        right = _right(Path(self.episodes))
        with self.likelihood(self.model) as model:
            scored = model.each([partial(model.turns, messages) for _, messages in right], work.report)
        kept = best(right, scored, self.per_problem, self.alpha)
        perplexities = {place: [perplexity(turn) for turn in scored[place]] for place in kept}
        low, high = tails([one for turns in perplexities.values() for one in turns], self.drop_low, self.drop_high)
        made = [_trace(*right[place], perplexities[place], low, high) for place in kept]
        earlier = [self.earlier] if isinstance(self.earlier, str) else self.earlier or []
        records = {_text(record): record for path in earlier for record in read_traces(path)}
        before = len(records)
        records.update({_text(record): record for record in made})
        if not records:
            raise ConfigurationError(
                f"None of the episodes in {self.episodes} is correct, and no earlier stage made traces, "
                "so there is nothing to train on. Start with a model that solves some of the problems, "
                "or use easier problems."
            )
        write_traces(work.folder / FILE, records.values())
        turns = [one for own in perplexities.values() for one in own]
        return {
            "right": float(len(right)),
            "kept": float(len(kept)),
            "new": float(len(records) - before),
            "traces": float(len(records)),
            "turns": float(len(turns)),
            "turns_dropped_low": float(sum(one < low for one in turns)),
            "turns_dropped_high": float(sum(one > high for one in turns)),
            "perplexity": float(np.median(turns)) if turns else None,
        }


def path_score(logps: Sequence[float], alpha: float) -> float:
    """Return an episode's path score in nats: (sum of its turns' log-probabilities) / (number of turns) ** alpha."""
    return sum(logps) / math.pow(len(logps), alpha)


def best(
    right: Sequence[tuple[str, Sequence[Message]]], scored: Sequence[Sequence[Sequence[float]]], most: int, alpha: float
) -> list[int]:
    """Return the indices of the episodes to keep: those with the best path scores, without duplicates.

    Args:
        right: The problem's id and the messages of each correct episode.
        scored: For each of these episodes and each of its turns, the log-probabilities of the turn's tokens.
        most: Maximum number of episodes per problem.
        alpha: See ``path_score``.
    """
    problems: dict[str, dict[tuple[str, ...], tuple[float, int]]] = {}
    for place, ((problem, messages), turns) in enumerate(zip(right, scored, strict=True)):
        said = tuple(message.content for message in messages)
        problems.setdefault(problem, {}).setdefault(said, (path_score([sum(turn) for turn in turns], alpha), place))
    kept = [sorted(own.values(), key=lambda one: (-one[0], one[1]))[:most] for own in problems.values()]
    return sorted(place for own in kept for _, place in own)


def perplexity(logps: Sequence[float]) -> float:
    """Return the perplexity of a turn, exp(-mean of log p), from the log-probabilities of its tokens, in nats."""
    return float(np.exp(-np.mean(logps)))


def tails(perplexities: Sequence[float], low: float, high: float) -> tuple[float, float]:
    """Return the lowest and the highest perplexity of the turns to train on, both inclusive.

    Args:
        perplexities: Perplexity of each turn.
        low: Share of the turns to exclude because their perplexity is lowest.
        high: Share of the turns to exclude because their perplexity is highest.
    """
    if not perplexities:
        return 0.0, float("inf")
    ranked = sorted(perplexities)
    return ranked[int(low * len(ranked))], ranked[len(ranked) - 1 - int(high * len(ranked))]


def _right(folder: Path) -> list[tuple[str, list[Message]]]:
    """Return the correct episodes of an evaluation in the order of their numbers, each with its problem's id."""
    found = []
    for entry in read_run(folder).held_out():
        episode = entry.episode
        if episode.correct and episode.available and any(one.role == "assistant" for one in episode.messages):
            messages = list(episode.messages)
            while messages[-1].role != "assistant":  # drop observations to which the policy did not reply
                messages.pop()
            found.append((episode.problem_id or str(entry.more.get("start", episode.group)), messages))
    return found


def _trace(problem: str, messages: Sequence[Message], perplexities: Sequence[float], low: float, high: float) -> Any:
    turns = iter(perplexities)
    shown = []
    for message in messages:
        learned = message.role != "assistant" or low <= next(turns) <= high
        shown.append({**message.record(), **({} if learned else {"train": False})})
    return {"problem_id": problem, "messages": shown, "perplexities": list(perplexities)}


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps([[message["role"], message["content"]] for message in record["messages"]])


STAGES.register("keep_right", KeepRight)
