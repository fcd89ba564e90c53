"""``PlayRequest``: a description of an episode that any process of a run can play; ``perform`` plays the episode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import PLAIN, Manner


class EpisodePlayer(Protocol):
    """Protocol of objects that play single episodes, such as ``rstar2_env.rollout.Player``.

    A player may also have the methods ``carry``, ``reply``, ``given`` and ``check_manner`` of ``Player``. If a run
    needs a method that its player lacks, the run is rejected.
    """

    @property
    def max_in_flight(self) -> int:
        """Maximum number of episodes to play at the same time."""

    async def episode(
        self, *, group: int, seed: int | None, options: Mapping[str, Any], sampling_seed: int | None
    ) -> Episode:
        """Play one episode; a failure ends it as ``unavailable``. For the arguments, see ``PlayRequest``."""

    async def branch(
        self, parent: Episode, token: int, *, options: Mapping[str, Any], sampling_seed: int | None
    ) -> Episode:
        """Play one episode that shares the first ``token`` tokens of ``parent.completion_ids``."""

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each token id in ``ids``, given ``prompt_ids`` and the earlier ids."""

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""

    def check(self, episodes: Sequence[Episode]) -> None:
        """Raise an error if too many of the episodes ended as ``unavailable``."""


@dataclass(frozen=True, slots=True)
class PlayRequest:
    """One episode to play.

    Attributes:
        group: Number of its group in the step, from 0.
        seed: Seed of the environment's ``reset``.
        options: Options of the environment's ``reset``.
        sampling_seed: Seed of the policy's sampling.
        parent: The episode that this one branches off; ``None`` for an episode that does not branch.
        token: Number of tokens shared with ``parent``.
        begun: The part of the episode that an earlier step played; ``None`` if it begins now.
        carries: Whether to keep the partial episode if it has to stop, so that a later step can continue it.
        shown: Text shown to the policy instead of the user's message; ``None`` shows the message.
        asks: A user's message to which the policy writes a single turn; ``None`` plays the environment instead.
        system: The system message before the message ``asks``.
        manner: How the episode is played; see ``Manner``.
        given: An expert's turns, played instead of the policy's turns; ``None`` samples the turns.
    """

    group: int
    seed: int | None
    options: Mapping[str, Any] = field(default_factory=dict)
    sampling_seed: int | None = None
    parent: Episode | None = None
    token: int = 0
    begun: Episode | None = None
    carries: bool = False
    shown: str | None = None
    asks: str | None = None
    system: str = ""
    manner: Manner = PLAIN
    given: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The result of an episode that had to stop before its end.

    Attributes:
        begun: The partial episode; ``None`` if nothing was played or kept.
    """

    begun: Episode | None = None


async def perform(request: PlayRequest, player: EpisodePlayer, record: Episode) -> Episode:
    """Play the episode that a request describes.

    Args:
        request: The episode to play.
        player: Plays the episode.
        record: If ``request.carries``, this object is filled during play, so that an unfinished episode can be kept.

    Raises:
        BranchError: The parent episode cannot branch at the requested token.
        ConfigurationError: The player lacks the method that the request needs, such as ``reply``.
    """
    seed = request.sampling_seed
    if request.given is not None:
        play = _method(player, "given", "play given turns")
        return await play(request.given, group=request.group, seed=request.seed, options=request.options)
    if request.asks is not None:
        play = _method(player, "reply", "ask the policy")
        return await play(request.asks, system=request.system, group=request.group, sampling_seed=seed)
    # Simple players do not have these parameters.
    more: dict[str, Any] = {} if request.shown is None else {"shown": request.shown}
    if request.manner != PLAIN:
        more["manner"] = request.manner
    more |= {"options": request.options, "sampling_seed": seed}
    if request.parent is not None:
        return await player.branch(request.parent, request.token, **more)
    if request.carries:
        return await _method(player, "carry", "carry an episode over")(record, begun=request.begun, **more)
    return await player.episode(group=request.group, seed=request.seed, **more)


def _method(player: EpisodePlayer, name: str, purpose: str) -> Callable[..., Awaitable[Episode]]:
    method: Callable[..., Awaitable[Episode]] | None = getattr(player, name, None)
    if method is None:
        raise ConfigurationError(
            f"The player {type(player).__name__} cannot {purpose}, which this run needs: it has no method `{name}`."
        )
    return method
