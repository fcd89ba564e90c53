"""Needs: inputs of reward components, such as a judge, that a wrapper, an evaluation or a trainer can provide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards.base import Need
from rstar2_env.rewards.component import Component

ALL: frozenset[Need] = frozenset(get_args(Need))

Place: TypeAlias = Literal["wrapper", "agents", "models", "training"]
"""Places where components score: a wrapper of an environment, an evaluation of agents or of models, training."""

PLACES: Mapping[Place, frozenset[Need]] = {
    "wrapper": frozenset({"judge", "problem"}),
    "agents": frozenset({"group", "judge", "problem"}),
    "models": ALL,
    "training": ALL,
}
"""For each place where components score, the needs (inputs of components) that it can meet. Some of them require a
judge, a source of problems, or an engine that computes log-probabilities."""

OWN_JUDGE = (
    "name a judge in the option `judge` of the component, such as "
    "judge=(model:url=http://localhost:8000/v1,model=NAME)."
)
"""End of the error message for a component that needs a judge but has none."""

_WORDS: Mapping[Need, str] = {
    "group": "the other episodes of its group",
    "judge": "a judge",
    "lm": "the policy's log-probabilities",
    "play": "further episodes",
    "problem": "the problem that is played",
    "tokens": "the policy's tokens",
}


def check_needs(component: Component, lacking: Mapping[Need, str]) -> None:
    """Check that all needs of a component are met.

    Args:
        component: The component.
        lacking: For each need that is not met, the reason and the remedy, as the end of the message "The reward
            component X needs Y, ...".

    Raises:
        ConfigurationError: A need is not met; the message has the reason.
    """
    if found := sorted(component.needs & lacking.keys()):
        first = found[0]
        raise ConfigurationError(f"The reward component {component.name!r} needs {_WORDS[first]}, {lacking[first]}")
