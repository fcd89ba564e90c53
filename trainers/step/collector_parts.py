"""Arguments of a ``Collector``: options and services; and checks that they fit the parts of the trainer."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import ProblemSource
from rstar2_env.rewards.base import RewardJudge

from ..advantages.base import Measure, check_group_size
from ..options.parts import Parts
from ..queue.local import LimitSource
from ..queue.requests import EpisodePlayer
from ..ranks import ONE, Ranks
from ..rollouts.base import Rollout, check_manner, check_waits
from ..samplers.base import Sampler
from ..selectors.base import Settles


@dataclass(frozen=True, slots=True)
class StepOptions:
    """Options of a step: the number of groups, and the way they are played.

    Attributes:
        problems_per_step: Number of groups to train on in a step, over all processes.
        group_size: Maximum number of episodes to train on in a group.
        oversample: Number of episodes played for each episode to train on: a group has ``group_size * oversample``
            episodes.
        refill: Maximum number of rounds in which rejected groups are replaced by fresh ones.
        replace: If at least this share of ``problems_per_step`` groups was accepted, copies of accepted groups replace
            the missing groups, instead of further refills; ``None`` trains on fewer groups.
        seed: Seed from which the draws of policy, rollout part and selector are derived.
        early_stop: Cancel the rest of a group once its selector has enough episodes.
        one_queue: Let a process also play episodes for which another process has no room.
        tail: How to treat groups that have not ended when ``problems_per_step`` groups have: ``wait`` for them,
            ``drop`` them, or ``carry`` them over to the next step. With ``drop`` and ``carry``, ``spare`` groups are
            started in addition.
        spare: Number of additional groups, as a share of ``problems_per_step``.
        timeout_s: Seconds that an idle process waits for a message of another process while episodes are played.
    """

    problems_per_step: int
    group_size: int
    oversample: int = 1
    refill: int = 0
    replace: float | None = None
    seed: int = 0
    early_stop: bool = False
    one_queue: bool = True
    tail: str = "wait"
    spare: float = 0.25
    timeout_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class StepServices:
    """Services of a process that a collector uses, in addition to the parts of the trainer.

    Attributes:
        player: Plays single episodes.
        sampler: Draws the starts of the groups.
        ranks: The processes.
        limits: Yields the number of episodes that the processes sharing a queue may play at once in total. With
            ``None``, each process plays at most ``player.max_in_flight`` at once.
        judge: The judge model, for reward components and rollout parts that need one.
        measure: Computes measurements of the policy, for an advantage that needs them.
        problems: The environment's source of problems, for rollout parts and rewards that read problems.
    """

    player: EpisodePlayer
    sampler: Sampler
    ranks: Ranks = ONE
    limits: LimitSource | None = None
    judge: RewardJudge | None = None
    measure: Measure | None = None
    problems: ProblemSource | None = None


def check_parts(parts: Parts, rollout: Rollout, options: StepOptions, services: StepServices) -> None:
    """Check that parts, options and services fit together.

    Args:
        parts: The parts.
        rollout: The rollout part, with all methods of the base class.
        options: The options.
        services: The services.

    Raises:
        ConfigurationError: Parts, options and services do not fit together.
    """
    count, size = options.problems_per_step, services.ranks.size
    if count % size:
        raise ConfigurationError(
            f"The {count} groups of a step (problems_per_step) cannot be divided evenly among {size} "
            f"processes: use a multiple of {size}."
        )
    if size > 1 and getattr(services.sampler, "one_process", False):
        raise ConfigurationError(
            f"With sampler.designer, each of the {size} processes would ask a model, and the sampler "
            f"{type(services.sampler).__name__} would choose different problems in each: start one process, or remove "
            "sampler.designer.",
            option="sampler",
        )
    if (services.limits is not None or options.tail != "wait") and size > 1 and not options.one_queue:
        raise ConfigurationError(
            "The options adaptive_in_flight and tail apply to the episodes of all processes together: "
            "let all processes share one queue of episodes",
            option="rollout.one_queue",
        )
    if options.tail == "carry" and not hasattr(services.player, "carry"):
        raise ConfigurationError(
            "tail='carry' stops unfinished episodes and continues them in the next step, which the player "
            f"{type(services.player).__name__} cannot do, because it has no method `carry`: choose another value",
            option="rollout.tail",
        )
    check_manner(rollout, services.player)
    if options.early_stop and not isinstance(parts.selector, Settles):
        raise ConfigurationError(
            "early_stop ends a group when the selector has enough episodes, but the selector "
            f"{type(parts.selector).__name__} cannot report this (it has no method `settled`): use "
            "another selector, or remove early_stop."
        )
    check_group_size(parts.advantage, options.group_size)
    if services.measure is None and (needs := getattr(parts.advantage, "needs", ())):
        raise ConfigurationError(
            f"The advantage {type(parts.advantage).__name__} needs the measurements "
            f"{', '.join(sorted(needs))}, which this trainer does not make: choose another advantage."
        )
    known = sorted({component.name for component in parts.rewards})
    named = (name.removeprefix("turns/") for name in getattr(parts.advantage, "components", ()))
    if unknown := sorted(set(named) - set(known)):
        raise ConfigurationError(
            f"The advantage {type(parts.advantage).__name__} uses the reward components "
            f"{', '.join(unknown)}, but the reward has only {', '.join(known)}: use these instead, or add "
            f"{', '.join(unknown)} to reward.",
            option="advantage",
        )
    check_waits(rollout, parts.rewards, early_stop=options.early_stop, tail=options.tail)
