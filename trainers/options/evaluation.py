"""``EvalOptions``: the options of the evaluation in a training run, one group of ``TrainConfig``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.options.declare import check_options, option


@dataclass(slots=True)
class EvalOptions:
    """Evaluation on held-out problems; an option that is ``None`` has the value that training uses.

    Attributes:
        every: Steps between evaluations; 0 disables evaluation.
        episodes: Episodes in each evaluation.
        env_options: Options that override ``rollout.env_options``; ``eval.env.NAME`` sets one of them. If the
            environment has splits and ``split`` is not set, ``split`` is ``"test"``.
        wrappers: Wrappers of the evaluation environment. ``rollout.wrappers`` are not applied in evaluation, so
            held-out metrics measure the task itself.
        temperature: Sampling temperature.
        max_episode_tokens: Token budget of an episode.
        max_turn_tokens: Token budget of one turn.
        max_episode_seconds: Wall-clock limit of an episode in seconds.
    """

    every: int = option(0, least=0)
    episodes: int = option(128, least=1)
    env_options: dict[str, Any] = field(default_factory=dict)
    wrappers: str | list[Any] = field(default_factory=list)
    temperature: float | None = option(None, least=0)
    max_episode_tokens: int | None = option(None, least=1)
    max_turn_tokens: int | None = option(None, least=1)
    max_episode_seconds: float | None = option(None, above=0)

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is out of its range; the message names the option.
            UnknownNameError: The name of a wrapper is unknown.
        """
        check_options(self, "eval.")
        check_wrappers(self.wrappers)


def check_wrappers(wrappers: str | list[Any]) -> None:
    """Check the wrappers that an option names.

    Raises:
        ConfigurationError: A wrapper does not have an option, or refuses its value.
        UnknownNameError: The name of a wrapper is unknown.
    """
    if wrappers:
        # Imported here, since most runs have no wrappers, and listing trainers does not need them.
        from rstar2_env.wrappers.registry import read_wrappers

        read_wrappers(wrappers)
