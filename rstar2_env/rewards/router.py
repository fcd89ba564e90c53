"""``router``: a separate reward for each source of problems (Guru, Reasoning360, arXiv 2506.14965).

An episode is scored by the component of its source, with that component's weight, gate and clip. A source without a
component is an error, not a 0, since a 0 would train the policy away from ungraded problems. Not covered: normalization
of each source by its own statistics (``advantage=task_norm``).

The router passes the results of each training step to the components that learn from them (``Learns``), and checkpoints
contain these components' states.
"""

# This module is longer than most parts because nested components can adapt and have a state.

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
    """Scores with the component of the problem's source; an unlisted source is an error (Guru, arXiv 2506.14965).

    Attributes:
        routes: The component of each source, in the notation of a recipe:
            ``{"math": "return", "code": "tool_use:weight=2"}``. By default, the paper's six domains with the
            environment's own reward.
        by: The field that names an episode's source: ``"task"`` for ``Episode.task``, which a mixture of environments
            sets; ``"problem"`` for ``Problem.source``.
    """

    routes: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(_DOMAINS, "return"))
    by: Literal["task", "problem"] = "task"
    _made: dict[str, Component] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Create the components.

        Raises:
            ConfigurationError: There are no components, or an option is not valid.
            UnknownNameError: A component does not exist.
        """
        super().__post_init__()
        if not self.routes:
            raise ConfigurationError(
                "The option `routes` of the reward component 'router' is empty: name the component of each source of "
                "problems, such as routes={\"math\": \"return\"} (for problems of 'math', the component 'return')."
            )
        made = {source: make_component(written) for source, written in self.routes.items()}
        for component in made.values():
            component.check()
        object.__setattr__(self, "_made", made)

    @property
    def needs(self) -> frozenset[Need]:
        """The inputs that any of the components needs, and also ``problem`` if ``by`` is ``"problem"``."""
        own: frozenset[Need] = frozenset({"problem"}) if self.by == "problem" else frozenset()
        return own.union(*(component.needs for component in self._made.values()))

    @property
    def takes_problem(self) -> bool:
        """Whether a component receives the problem if there is one."""
        return any(component.takes_problem for component in self._made.values())

    def __call__(self, episode: Episode, ctx: RewardContext) -> Score | Awaitable[Score]:
        """Score an episode with the component of its source.

        Raises:
            ConfigurationError: The source has no component.
        """
        source = episode.task
        if self.by == "problem" and ctx.problem is not None:
            source = ctx.problem.source
        component = self._made.get(source)
        if component is None:
            raise ConfigurationError(
                "The reward component 'router' does not have a route for the source of problems "
                f"{source!r}, only for {', '.join(self._made)}: add a component for this source to `routes`."
            )
        return component.found(episode, ctx)

    def observe(self, outcomes: Sequence[GroupOutcome]) -> None:
        """Pass the groups of each source to its component; with ``by="problem"``, every component gets all groups."""
        for source, learner in self._learners().items():
            learner.observe([one for one in outcomes if self.by == "problem" or one.task == source])

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all components that have a state, keyed by source."""
        return {source: learner.state_dict() for source, learner in self._learners().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the states that ``state_dict`` returned."""
        for source, learner in self._learners().items():
            learner.load_state_dict(state[source])

    def _learners(self) -> dict[str, Learns]:
        scores: dict[str, object] = {source: component.score for source, component in self._made.items()}
        return {source: score for source, score in scores.items() if isinstance(score, Learns)}


REWARDS.register("router", Router)
