"""Train the agent ``navigator`` by Double DQN (arXiv 1509.06461): dueling network, epsilon-greedy, replay buffer.

The target of ``Q(s, a)`` is ``r + gamma Q'(s', argmax_b Q(s', b))``, and ``r`` at the end of an episode, where r is the
reward, s' the next state, and Q' a copy of Q that is renewed every ``copy_every`` updates. Covered: ``learn``, for any
function that plays an episode with a given ``Chooser``; ``train_navigator``, which plays in an environment through
``reset`` and ``step``. Torch is imported only for training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.evaluation.play.episode import play_episode

from ._dueling import _WIDE, ACTIONS, SCORES, q_values

PlayEpisode = Callable[[Callable[[tuple[int, ...]], int], int], float]
"""Function that plays an episode, given a ``Chooser`` of reasoning blocks and a seed, and returns the reward."""


@dataclass(frozen=True)
class Learning(CheckedOptions):
    """Training options of the navigator.

    Attributes:
        episodes: Number of episodes to play.
        gamma: Discount factor per reasoning block.
        lr: Learning rate of Adam.
        batch: Number of transitions (block choices, drawn from all episodes so far) in an update.
        updates: Number of updates after each episode.
        copy_every: Number of updates after which the target network is replaced by a copy of the trained network.
        explore: Share of the episodes over which the probability of a random block falls from 1 to ``least_random``.
        least_random: Probability of a random block in the remaining episodes.
    """

    episodes: int = option(800, least=1)
    gamma: float = option(1.0, above=0, most=1)
    lr: float = option(1e-3, above=0)
    batch: int = option(64, least=1)
    updates: int = option(4, least=1)
    copy_every: int = option(200, least=1)
    explore: float = option(0.6, above=0, most=1)
    least_random: float = option(0.1, least=0, most=1)


def learn(play: PlayEpisode, learning: Learning | None = None, *, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Train a network that chooses the next reasoning block.

    Args:
        play: Function that plays one episode with the given function for choosing blocks, and returns the reward.
        learning: Training options.
        seed: Seed of weights, exploration and batches; the seeds of the episodes are ``seed``, ``seed + 1``, ....

    Returns:
        The weights, named as in ``_dueling.SHAPES``.
    """
    import copy

    import torch
    from torch import nn

    how = learning or Learning()
    rng = np.random.default_rng(seed)
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    network = nn.ModuleDict({"features": nn.Linear(SCORES, _WIDE)})
    for head, outputs in (("value", 1), ("advantage", ACTIONS)):
        network[head] = nn.Sequential(nn.Linear(_WIDE, _WIDE), nn.ReLU(), nn.Linear(_WIDE, outputs))
    torch.random.set_rng_state(state)

    def worth(weights: Any, scores: Any) -> Any:
        hidden = torch.relu(weights["features"](scores - 2.0))
        advantage = weights["advantage"](hidden)
        return weights["value"](hidden) + advantage - advantage.mean(-1, keepdim=True)

    target = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=how.lr)
    seen: list[tuple[tuple[int, ...], int, float, tuple[int, ...], float]] = []
    made = 0
    for episode in range(how.episodes):
        known = weights_of(network)
        chance = max(how.least_random, 1 - episode / (how.explore * how.episodes))
        taken: list[tuple[tuple[int, ...], int]] = []

        def choose(scores: tuple[int, ...], known: Any = known, chance: float = chance, taken: Any = taken) -> int:
            block = int(rng.integers(ACTIONS))
            if rng.random() >= chance:
                block = int(np.argmax(q_values(known, np.asarray(scores))))
            taken.append((scores, block))
            return block

        reward = play(choose, seed + episode)
        for place, (scores, block) in enumerate(taken):
            last = place + 1 == len(taken)
            after = scores if last else taken[place + 1][0]
            seen.append((scores, block, reward if last else 0.0, after, float(not last)))
        for _ in range(how.updates if len(seen) >= how.batch else 0):
            picked = [seen[place] for place in rng.integers(len(seen), size=how.batch)]
            columns = [torch.tensor(np.asarray(one)) for one in zip(*picked, strict=True)]
            before, blocks, rewards, then, goes_on = columns
            with torch.no_grad():
                best = worth(network, then.float()).argmax(-1, keepdim=True)
                follows = worth(target, then.float()).gather(-1, best)[:, 0]
                aim = rewards.float() + how.gamma * goes_on.float() * follows
            guess = worth(network, before.float()).gather(-1, blocks[:, None])[:, 0]
            loss = nn.functional.smooth_l1_loss(guess, aim)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call] # torch declares no types here
            optimizer.step()
            made += 1
            if made % how.copy_every == 0:
                target.load_state_dict(network.state_dict())
    return weights_of(network)


def weights_of(network: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the weights of a torch network as NumPy arrays."""
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def train_navigator(
    env: gym.Env[str, str], agent: Any, learning: Learning | None = None, *, seed: int = 0, **options: Any
) -> dict[str, np.ndarray[Any, Any]]:
    """Train the policy of a ``navigator`` on an environment, with the reward at the end of the episode.

    Args:
        env: Any text environment; the seeds of its episodes are ``seed``, ``seed + 1``, ....
        agent: The inner agent, in any form that the navigator's option ``agent`` accepts.
        learning: Training options.
        seed: Seed of weights, exploration and episodes.
        **options: Options of the navigator, such as ``steps``.

    Returns:
        The weights, for the navigator's option ``weights``; ``save_weights`` writes them to a file.
    """
    from ..base import make

    navigator: Any = make("navigator", agent=agent, **options)

    def play(choose: Callable[[tuple[int, ...]], int], number: int) -> float:
        navigator.choose = choose
        return float(play_episode(env, navigator, seed=number).reward or 0.0)

    return learn(play, learning, seed=seed)
