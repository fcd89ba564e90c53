"""Worlds whose episodes can all be listed, a tabular softmax policy on them, and the exact gradients of objectives.

A world is a tree: at each decision the policy writes one of two tokens, after a call the environment answers (the call
works or fails), and an episode ends with a reward. A branch may continue with forced tokens, which the policy writes
with probability 1: they make episodes longer without further decisions. Not covered: estimates of these
gradients (``atlas_update``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.rewards.roc_penalty import penalty

PROMPT = [1]
"""Token ids of the prompt."""
CERTAIN = 60.0
"""Difference of the logits of a forced token: the other token has the probability e^-60, which is 0 in sums."""
RATE = 0.5
"""Learning rate of the updates that older weights lack; see ``older``."""
Prefix = tuple[int, ...]


@dataclass(frozen=True)
class World:
    """One problem, in at most four turns.

    The first token chooses: 0 answers without a tool, and 1 calls the tool. After a call that works, the policy
    answers; after a call that fails, it gives up (0) or calls again (1). An answer is one token, of which 1 is right.

    Attributes:
        name: The name in tables.
        failure: Probability that a call fails.
        calls: Maximum number of calls; the last one never fails. Turns are at most one more. With 0, the first token is
            forced.
        padding: Forced tokens after a wrong direct answer.
        bonus: Reward of each call that works; 0 is the sparse reward.
        logits: Logit of token 1 minus that of token 0 under the policy at each kind of decision: ``first``, ``direct``,
            ``answer``, ``again``.
    """

    name: str
    failure: float = 0.3
    calls: int = 2
    padding: int = 3
    bonus: float = 0.0
    logits: Mapping[str, float] = field(
        default_factory=lambda: {"first": 0.4, "direct": -0.6, "answer": 0.2, "again": 0.5}
    )

    def paths(self) -> list[Path]:
        """Return all episodes of the world, without the policy's probabilities."""
        return [*self._direct(), *(self._called(1, Path(1.0, ((1,),), (), (), "first")) if self.calls else ())]

    def _direct(self) -> Iterator[Path]:
        for answer in (0, 1):
            tokens = (0, answer, *[0] * (0 if answer else self.padding))
            kinds = ("first" if self.calls else "forced") + ",direct" + ",forced" * (len(tokens) - 2)
            yield Path(1.0, (tokens,), (), (), kinds, float(answer))

    def _called(self, number: int, path: Path) -> Iterator[Path]:
        """Yield the ends of a path whose last turn is call ``number``."""
        fails = self.failure if number < self.calls else 0.0
        paid = path.reward + self.bonus
        for answer in (0, 1) if fails < 1 else ():
            yield replace(
                path,
                chance=path.chance * (1 - fails),
                turns=(*path.turns, (answer,)),
                shown=(*path.shown, 1),
                works=(*path.works, True),
                kinds=f"{path.kinds},answer",
                reward=paid + answer,
                right=bool(answer),
            )
        if fails > 0:
            failed = replace(path, chance=path.chance * fails, shown=(*path.shown, 0), works=(*path.works, False))
            yield replace(failed, turns=(*path.turns, (0,)), kinds=f"{path.kinds},again")
            again = replace(failed, turns=(*path.turns, (1,)), kinds=f"{path.kinds},again")
            yield from self._called(number + 1, again)


@dataclass(frozen=True)
class Path:
    """One episode: its tokens and results.

    Attributes:
        chance: Probability of the environment's answers.
        turns: The policy's tokens of each turn.
        shown: The environment's token after each turn but the last.
        works: Whether each call worked.
        kinds: Kind of decision of each policy token, joined by commas.
        reward: Return of the episode.
        right: Whether the answer is right.
    """

    chance: float
    turns: tuple[tuple[int, ...], ...]
    shown: tuple[int, ...]
    works: tuple[bool, ...]
    kinds: str
    reward: float = 0.0
    right: bool | None = None

    @property
    def correct(self) -> bool:
        """Whether the answer is right."""
        return self.reward >= 1 if self.right is None else self.right

    def tokens(self) -> tuple[list[int], list[int]]:
        """Return the token ids after the prompt and their mask: 1 on the policy's."""
        ids: list[int] = []
        mask: list[int] = []
        for number, turn in enumerate(self.turns):
            shown = self.shown[number : number + 1]
            ids += [*turn, *shown]
            mask += [1] * len(turn) + [0] * len(shown)
        return ids, mask

    def episode(self, logprobs: list[float], bonus: float = 0.0) -> Episode:
        """Return the episode as a player records it.

        Args:
            logprobs: Log-probability of each token under the policy that sampled it; 0 on the environment's.
            bonus: Reward of a call that works.
        """
        ids, mask = self.tokens()
        made = Episode(
            problem_id="p", task="listed", prompt_ids=list(PROMPT), completion_ids=ids, mask=mask,
            logprobs=logprobs, reward=self.reward, end="answered", turns=len(self.turns), correct=self.correct,
            answer_tags=1, answer="1" if self.correct else "0",
        )  # fmt: skip
        made.messages.append(Message("user", "?"))
        at, seen = 0, "?"
        for number, turn in enumerate(self.turns):
            calls = number < len(self.works)
            statuses = [ToolStatus.OK if self.works[number] else ToolStatus.EXCEPTION] if calls else []
            paid = bonus * float(self.works[number]) if calls else self.reward - bonus * sum(self.works)
            made.steps.append(Turn(at, at + len(turn), seen, paid, statuses))
            made.statuses += statuses
            made.messages.append(Message("assistant", " ".join(map(str, turn))))
            at += len(turn) + 1
            if calls:
                seen = str(self.shown[number])
                made.messages.append(Message("user", seen))
        return made


class TabularPolicy(nn.Module):
    """A softmax over two tokens for each prefix at which a world has a decision.

    It has the interface of a causal language model that the reference backend uses. The hidden states are the logits.

    Args:
        world: The world.
        shift: Added to the logit of token 1 at every decision, times 1, -1, 1, ... in the order of the decisions; for
            older weights and for a reference model.
    """

    device = torch.device("cpu")

    def __init__(self, world: World, shift: float = 0.0) -> None:
        super().__init__()
        self.at: dict[Prefix, int] = {}
        rows = []
        for path in world.paths():
            ids, mask = path.tokens()
            kinds = iter(path.kinds.split(","))
            for position, own in enumerate(mask):
                prefix = (*PROMPT, *ids[:position])
                if not own or (kind := next(kinds)) == "forced" or prefix in self.at:
                    continue
                self.at[prefix] = len(rows)
                rows.append([0.0, world.logits[kind] + shift * (-1) ** len(rows)])
        self.table = nn.Parameter(torch.tensor(rows, dtype=torch.float64))
        self._forced = torch.tensor([[CERTAIN, 0.0]], dtype=torch.float64)

    def forward(self, input_ids: Tensor, output_hidden_states: bool = False) -> Any:
        """Return the logits of the next token at each position, (1, tokens, 2)."""
        ids = input_ids[0].tolist()
        rows = [self.at.get(tuple(ids[: at + 1]), len(self.at)) for at in range(len(ids))]
        logits = torch.cat([self.table, self._forced])[rows][None]
        return SimpleNamespace(logits=logits, hidden_states=(logits,))

    def logprobs(self, path: Path, temperature: float = 1.0) -> Tensor:
        """Return the log-probability of each token after the prompt; 0 on the environment's, (tokens,)."""
        ids, mask = path.tokens()
        logits = self(torch.tensor([[*PROMPT, *ids]])).logits[0, len(PROMPT) - 1 : -1] / temperature
        chosen = logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]
        return chosen * torch.tensor(mask, dtype=chosen.dtype)

    def chance(self, path: Path, temperature: float = 1.0) -> Tensor:
        """Return the probability of an episode, a scalar."""
        return path.chance * self.logprobs(path, temperature).sum().exp()


def older(world: World, updates: int) -> TabularPolicy:
    """Return the weights of ``updates`` updates ago.

    For each update, ``RATE`` times the gradient of the return at the weights after the update is subtracted from these
    weights.
    """
    found = TabularPolicy(world)
    for _ in range(updates):
        step = gradient(expected_return(found, world), found)
        with torch.no_grad():
            found.table -= RATE * step
    return found


def expected_return(policy: TabularPolicy, world: World) -> Tensor:
    """Return the expected return, a scalar with a gradient."""
    return torch.stack([policy.chance(path) * path.reward for path in world.paths()]).sum()


def success(policy: TabularPolicy, world: World) -> Tensor:
    """Return the probability of a right answer, a scalar with a gradient."""
    return torch.stack([policy.chance(path) * float(path.correct) for path in world.paths()]).sum()


def clean_success(policy: TabularPolicy, world: World) -> Tensor:
    """Return the expected value of 1 - p / 2 for right and 0 for wrong episodes, p being the penalty of ``roc``."""
    paid = {path: float(path.correct) * (1 - penalty(path.episode([])) / 2) for path in world.paths()}
    return torch.stack([policy.chance(path) * value for path, value in paid.items()]).sum()


def pass_at(k: int, policy: TabularPolicy, world: World) -> Tensor:
    """Return the probability that at least one of ``k`` episodes is right, a scalar with a gradient."""
    return 1 - (1 - success(policy, world)) ** k


def log_success(policy: TabularPolicy, world: World) -> Tensor:
    """Return the logarithm of the probability of a right answer: the maximum likelihood objective of MaxRL."""
    return success(policy, world).log()


def regularised(policy: TabularPolicy, world: World, reference: TabularPolicy, coef: float) -> Tensor:
    """Return the expected return minus ``coef`` times the KL divergence of episodes from a reference policy."""
    logs = [(path, policy.logprobs(path).sum(), reference.logprobs(path).sum().detach()) for path in world.paths()]
    divergence = torch.stack([policy.chance(path) * (own - other) for path, own, other in logs]).sum()
    return expected_return(policy, world) - coef * divergence


def token_divergence(policy: TabularPolicy, world: World, other: TabularPolicy, *, reverse: bool = False) -> Tensor:
    """Return the sum of KL(policy, other) over the decisions of an episode, a scalar with a gradient.

    The probabilities to reach the decisions count as constants, as in a loss on sampled tokens.

    Args:
        policy: The policy.
        world: The world.
        other: The other model, which has no gradient.
        reverse: Use KL(other, policy).
    """
    own, given = policy.table.log_softmax(-1), other.table.detach().log_softmax(-1)
    first, second = (given, own) if reverse else (own, given)
    return (_visits(policy, world) * (first.exp() * (first - second)).sum(-1)).sum()


def token_entropy(policy: TabularPolicy, world: World) -> Tensor:
    """Return the sum of the entropy over the decisions of an episode, a scalar with a gradient; see above."""
    logs = policy.table.log_softmax(-1)
    return -(_visits(policy, world) * (logs.exp() * logs).sum(-1)).sum()


def _visits(policy: TabularPolicy, world: World) -> Tensor:
    """Return the probability that an episode reaches each decision, without a gradient, (decisions,)."""
    found = torch.zeros(len(policy.at), dtype=torch.float64)
    with torch.no_grad():
        for path in world.paths():
            ids, mask = path.tokens()
            chance = policy.chance(path)
            for position, own in enumerate(mask):
                if own and (row := policy.at.get((*PROMPT, *ids[:position]))) is not None:
                    found[row] += chance
    return found


def gradient(value: Tensor, policy: TabularPolicy) -> Tensor:
    """Return the gradient of a value with respect to the policy's table, (decisions, 2)."""
    (found,) = torch.autograd.grad(value, policy.table)
    return found


RARE = {"first": 0.0, "direct": -2.5, "answer": -2.5, "again": 0.0}
WORLDS = {
    world.name: world
    for world in (
        World("base", calls=1),
        World("equal lengths", calls=1, padding=0),
        World("dense", calls=1, bonus=0.2),
        World("rare", calls=1, logits=RARE),
        World("failing", failure=0.5),
        World("reliable", failure=0.05),
        World("four turns", calls=3),
        World("three turns", calls=2),
        World("one turn", calls=0),
        World("seldom failing", failure=0.1),
    )
}
"""The worlds of the atlas. In ``equal lengths`` all episodes have two tokens."""
