"""Plays whole groups with a real player, as a collector does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rstar2_env.core.blocking import run_blocking
from rstar2_env.core.episode import Episode
from rstar2_env.rollout import Player
from rstar2_env.trainers.rollouts.plain import Plain
from rstar2_env.trainers.samplers.base import Start
from rstar2_env.trainers.step.group_play import GroupPlay


async def aplay_groups(
    player: Player, groups: int, size: int, settled: Callable[[Sequence[Episode | None]], bool]
) -> list[Episode]:
    """The episodes of some groups; the rest of a group is cancelled when ``settled`` says so."""
    play = GroupPlay(player, seed=0, step=0, first=0, size=size, settled=settled)
    found = await Plain()([Start(number) for number in range(groups)], size, play)
    episodes = [episode for group in found for episode in group]
    player.check(episodes)
    return episodes


def play_groups(
    player: Player, groups: int, size: int, settled: Callable[[Sequence[Episode | None]], bool]
) -> list[Episode]:
    """See ``aplay_groups``."""
    return run_blocking(lambda: aplay_groups(player, groups, size, settled))
