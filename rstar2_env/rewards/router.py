"""``router``: each source of problems has a reward of its own (Guru, Reasoning360, arXiv 2506.14965).

An episode is scored by the component that its source names, with the weight, gate and clip of that; a source without
one is an error, not a 0, since a 0 would train the policy away from problems that nobody graded. Not covered:
normalising each source by its own statistics, which ``advantage=task_norm`` does. Longer than
most parts, since nested components can adapt and have a state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.rewards.base import REWARDS, GroupOutcome, Learns, Need, RewardContext, Score
from rstar2_env.rewards.component import Component, make_component

_DOMAINS = ("math", "code", "science", "logic", "simulation", "tabular")


@dataclass(frozen=True)
class Router(CheckedOptions):
    """The component that the problem's source names; a source that is not listed is an error (Guru, arXiv 2506.14965).

    Attributes:
        routes: The component of each source, as a recipe names one:
            ``{"math": "return", "code": "tool_use:weight=2"}``. By default the paper's six domains, each with what its
            environment pays.
        by: What the source is: ``"task"``, what the environment says of the problem as a mixture of environments does;
            ``"problem"``, the source of the problem itself.
    """

    routes: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(_DOMAINS, "return"))
    by: Literal["task", "problem"] = "task"
    _made: dict[str, Component] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the components.

        Raises:
            ConfigurationError: There is none, or one does not take its options.
            UnknownNameError: There is no component of one of the names.
        """
        super().__post_init__()
        if not self.routes:
            raise ConfigurationError('The router needs a component for each source: routes={"math": "return"}.')
        made = {source: make_component(written) for source, written in self.routes.items()}
        for component in made.values():
            component.check()
        object.__setattr__(self, "_made", made)

    @property
    def needs(self) -> frozenset[Need]:
        """All that any of the components needs."""
        own: frozenset[Need] = frozenset({"problem"}) if self.by == "problem" else frozenset()
        return own.union(*(component.needs for component in self._made.values()))

    def __call__(self, episode: Episode, ctx: RewardContext) -> Score | Awaitable[Score]:
        """The score of the component of the episode's source.

        Raises:
            ConfigurationError: The source has none.
        """
        source = episode.task
        if self.by == "problem" and ctx.problem is not None:
            source = ctx.problem.source
        component = self._made.get(source)
        if component is None:
            raise ConfigurationError(
                f"The router has no route for the source {source!r}, only for {', '.join(self._made)}: name its "
                "component in routes."
            )
        return component.found(episode, ctx)

    def observe(self, outcomes: Sequence[GroupOutcome]) -> None:
        """See ``Learns``: a component receives the groups of its source; with ``by="problem"``, all groups."""
        for source, learner in self._learners().items():
            learner.observe([one for one in outcomes if self.by == "problem" or one.task == source])

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the components that have one, by source."""
        return {source: learner.state_dict() for source, learner in self._learners().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the states of the components."""
        for source, learner in self._learners().items():
            learner.load_state_dict(state[source])

    def _learners(self) -> dict[str, Learns]:
        scores: dict[str, object] = {source: component.score for source, component in self._made.items()}
        return {source: score for source, score in scores.items() if isinstance(score, Learns)}


REWARDS.register("router", Router)
