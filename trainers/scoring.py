"""Scores the episodes of a group: the components of the reward, their sum, and what they need beside the episode."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards.base import Judge, LanguageModel, RewardContext
from rstar2_env.rewards.component import Component


def check_components(components: Sequence[Component], judge: Judge | None) -> None:
    """Check that a trainer can compute the reward.

    Raises:
        ConfigurationError: There is no component, two have the same name, one needs a judge and there is none, or one
            is paid by the step.
    """
    names = [component.name for component in components]
    if not names or len(set(names)) < len(names):
        raise ConfigurationError(
            f"A trainer needs reward components with distinct names, at least one, not {names}; name a second of the "
            "same kind with its option label."
        )
    for component in components:
        component.check()
        if component.when == "step":
            raise ConfigurationError(
                f"A trainer pays the reward component {component.name!r} at the end of an episode: leave out "
                "when=step, or put it into the wrapper reward_shaping."
            )
        if "judge" in component.needs and judge is None:
            raise ConfigurationError(
                f"The reward component {component.name!r} needs a judge, and this trainer has none: give the collector "
                "one, or leave the component out."
            )


async def score(
    group: Sequence[Episode], components: Sequence[Component], lm: LanguageModel, judge: Judge | None
) -> None:
    """Set ``rewards`` and ``reward`` of every episode of a group that counts.

    ``reward`` becomes the sum of the components; one that has nothing to score is not among ``rewards``. What the
    environment told apart of its own return stays there as ``return/<name>``.

    Args:
        group: All episodes of the group.
        components: The components of the reward.
        lm: The policy.
        judge: The judge, for components that need one.
    """
    counted = [episode for episode in group if episode.available]

    async def values_of(episode: Episode) -> list[float | None]:
        info = episode.steps[-1].info if episode.steps else {}
        return [
            await component.avalue(
                episode,
                RewardContext(
                    info,
                    group=counted if "group" in component.needs else (),
                    lm=lm if "lm" in component.needs else None,
                    judge=judge if "judge" in component.needs else None,
                ),
            )
            for component in components
        ]

    # All of them before any reward changes: a component may compare the returns of the group.
    for episode, values in zip(counted, await asyncio.gather(*map(values_of, counted)), strict=True):
        found = {
            component.name: value for component, value in zip(components, values, strict=True) if value is not None
        }
        own = {f"return/{name}": value for name, value in episode.rewards.items()}
        episode.rewards = {**own, **found}
        episode.reward = float(sum(found.values()))
