"""``Player``: plays episodes with an engine and Gymnasium environments; each episode runs as a coroutine.

Covered: any environment with text observations and text actions, through ``reset`` and ``step`` alone; turns are
generated while tool calls of other episodes run; an exception ends only the episode in which it is raised, as
``unavailable``; budgets of tokens, turns and time; branches. Not covered: admission of episodes according to an
engine's memory (the engine decides, or ``several_engines.py`` for several engines).
"""

from __future__ import annotations

import asyncio
import itertools
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import fields, replace
from typing import Annotated, Any

from rstar2_env.core.blocking import all_ended, run_blocking
from rstar2_env.core.closing import Closing
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import BranchError, ConfigurationError
from rstar2_env.core.manner import PLAIN, Manner
from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.core.progress import progress
from rstar2_env.core.telemetry import agent_span
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.engine import Engine, SamplingParams, Scores, most_after, open_episode
from rstar2_env.rollout.env_pool import EnvFactory, EnvPool, LentEnv
from rstar2_env.rollout.replay import Replay
from rstar2_env.rollout.request import QUESTION, Budget, EpisodeRequest, RolloutError
from rstar2_env.rollout.seats import GivenTurns, TwoPolicies, check_engines
from rstar2_env.rollout.turns import SingleReply, Timing, Turns, drop_unanswered

_POLICY = "policy"
"""Name of the policy as an agent in telemetry."""


class Player(Closing):
    """Plays episodes in a pool of environments. Close it, or use it in a ``with`` statement.

    Args:
        make_env: Creates one environment; called at most once for each episode in flight.
        engine: Generates the turns.
        chat: Converts the conversation to token ids.
        sampling: Sampling parameters; ``max_tokens`` and ``seed`` are replaced for each turn, and the chat's
            ``stop_ids`` are added.
        budget: Limits of one episode; ``None`` means the defaults of ``Budget``.
        max_in_flight: Maximum number of episodes played at the same time.
        max_failed: Fraction of a batch, 0 to 1, that may end ``unavailable`` before ``play`` raises.
        stale_engine: An engine with older weights, for episodes that use them (``Manner.stale``); ``None`` without one.
        model: Name of the model, for telemetry.
        provider: Name of the engine, for telemetry.

    Attributes:
        engine: The argument ``engine``.
        stale_engine: The engine with older weights.
        chat: Converts the conversation to token ids.
        encode: Converts a text to token ids; special tokens in the text are encoded as plain text.
        decode: Converts the token ids of a turn to text, without the end-of-turn token.
        sampling: The argument ``sampling``.
        budget: Limits of one episode.
        max_in_flight: Maximum number of episodes played at the same time.
        envs: The pool that lends an environment to each episode.

    Raises:
        ConfigurationError: ``max_in_flight`` is not positive.
    """

    @checked
    def __init__(
        self,
        make_env: EnvFactory,
        engine: Engine,
        chat: ChatCodec,
        *,
        sampling: SamplingParams,
        budget: Budget | None = None,
        max_in_flight: Count = 1024,
        max_failed: Annotated[float, Rule(least=0, most=1)] = 0.5,
        stale_engine: Engine | None = None,
        model: str = "",
        provider: str = "",
    ) -> None:
        self.engine, self.chat, self.stale_engine = engine, chat, stale_engine
        self.encode, self.decode = chat.plain, chat.text
        self.sampling, self.budget = sampling, budget or Budget()
        self.max_in_flight, self._max_failed = max_in_flight, max_failed
        self.envs = EnvPool(make_env)
        self._served = (model, provider)
        self._timing = Timing()

    def play(self, requests: Sequence[EpisodeRequest], *, sampling: SamplingParams | None = None) -> list[Episode]:
        """Play all requested episodes and wait until they end; coroutines call ``aplay`` instead.

        Args:
            requests: The episodes to play.
            sampling: Sampling parameters; ``None`` means the player's own.

        Returns:
            The episodes, in the order of the requests.

        Raises:
            RolloutError: More than ``max_failed`` of the episodes ended ``unavailable``; the message contains one
                cause.
        """
        return run_blocking(lambda: self.aplay(requests, sampling=sampling))

    async def aplay(
        self, requests: Sequence[EpisodeRequest], *, sampling: SamplingParams | None = None
    ) -> list[Episode]:
        """Play all requested episodes, as ``play`` does; cancelling this coroutine cancels its engine requests."""
        room, done = asyncio.Semaphore(self.max_in_flight), itertools.count(1)

        async def play_one(request: EpisodeRequest) -> Episode:
            episode = Episode(group=request.group, seed=request.seed)
            async with room:
                await self._play(episode, request, sampling or self.sampling)
            report(next(done), len(requests))
            return episode

        with progress("playing") as report:
            report(0, len(requests))
            episodes = await all_ended(map(play_one, requests))
        self.check(episodes)
        return episodes

    async def episode(
        self,
        *,
        group: int = 0,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        sampling_seed: int | None = None,
        shown: str | None = None,
        manner: Manner = PLAIN,
    ) -> Episode:
        """Play one episode, regardless of ``max_in_flight``; a failure ends it as ``unavailable``.

        Args:
            group: Number of the episode's group.
            seed: Seed of the environment's ``reset``.
            options: Options of ``reset``.
            sampling_seed: Seeds the policy's draws; ``None`` leaves the seed to the engine.
            shown: Text in place of the user's message (see ``EpisodeRequest.shown``); ``None`` keeps the message.
            manner: How the episode is played; see ``Manner``.
        """
        episode = Episode(group=group, seed=seed)
        request = EpisodeRequest(group, seed, options or {}, sampling_seed, shown, manner)
        await self._play(episode, request, self.sampling)
        return episode

    async def reply(self, text: str, *, system: str = "", group: int = 0, sampling_seed: int | None = None) -> Episode:
        """Ask the policy for one turn, without an environment; the episode's reward is 0.

        Args:
            text: The user's message.
            system: The system message; empty for none.
            group: Number of the episode's group.
            sampling_seed: Seeds the policy's draws; ``None`` leaves the seed to the engine.
        """
        episode = Episode(group=group)
        request = EpisodeRequest(group, None, {}, sampling_seed)
        await self._play(episode, request, self.sampling, env=SingleReply(text, system))
        return episode

    async def given(
        self,
        turns: Sequence[str],
        *,
        group: int = 0,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Episode:
        """Play an episode with given turns, such as an expert's; if too few are given, it ends as ``unavailable``.

        Args:
            turns: The given turns as text.
            group: Number of the episode's group.
            seed: Seed of the environment's ``reset``.
            options: Options of ``reset``.
        """
        episode = Episode(group=group, seed=seed, source="expert")
        request = EpisodeRequest(group, seed, options or {})
        await self._play(episode, request, self.sampling, given=GivenTurns(turns, self.chat))
        return episode

    async def branch(
        self,
        parent: Episode,
        token: int,
        *,
        options: Mapping[str, Any] | None = None,
        sampling_seed: int | None = None,
        shown: str | None = None,
        manner: Manner = PLAIN,
    ) -> Episode:
        """Play one episode that starts with the same tokens as another episode, and then continues differently.

        Args:
            parent: The other episode.
            token: Number of tokens of ``parent.completion_ids`` that both episodes share; they must end within a policy
                turn, or be all tokens of an unfinished episode (``Episode.end`` is ``OPEN``).
            options: Options of ``reset`` with which the parent was played.
            sampling_seed: Seeds the policy's draws; ``None`` leaves the seed to the engine.
            shown: The ``shown`` text with which the parent was played.
            manner: How the episode is played after these tokens.

        Raises:
            BranchError: The parent has no policy turn at that token, or the environment does not show the same text
                again.
        """
        replay = Replay(parent, token)
        episode = Episode(group=parent.group, seed=parent.seed)
        request = EpisodeRequest(parent.group, parent.seed, options or {}, sampling_seed, shown, manner)
        await self._play(episode, request, self.sampling, replay)
        if not replay.over and episode.end == "time":
            episode.void(
                "unavailable",
                f"The replay of an episode up to token {token} took longer than its time limit (Budget.wall_s).",
            )
        if not replay.over and not episode.failed:
            raise BranchError(
                f"The replay of an episode ended ({episode.end}) before token {token}, at which the new branch should "
                "begin."
            )
        return episode

    async def carry(
        self,
        episode: Episode,
        *,
        options: Mapping[str, Any] | None = None,
        sampling_seed: int | None = None,
        begun: Episode | None = None,
        shown: str | None = None,
        manner: Manner = PLAIN,
    ) -> Episode:
        """Play one episode, and store its turns in ``episode`` as they end, so that a cancelled call can be continued.

        The turns of ``begun`` are replayed without the engine: the environment receives the same turns, and the turns
        keep their log-probabilities and weight versions. If the environment does not show the same text again, the
        episode is played from its start.

        Args:
            episode: An empty episode with its group and its seed; receives the turns.
            options: Options of ``reset``.
            sampling_seed: Seeds the policy's draws; ``None`` leaves the seed to the engine.
            begun: The record of an earlier, cancelled call; ``None`` if there was none.
            shown: Text in place of the user's message (see ``EpisodeRequest.shown``); ``None`` keeps the message.
            manner: How the episode is played; see ``Manner``.
        """
        request = EpisodeRequest(episode.group, episode.seed, options or {}, sampling_seed, shown, manner)
        replay = None if begun is None or not begun.turns else Replay(begun, None)
        try:
            await self._play(episode, request, self.sampling, replay)
        except BranchError:
            fresh = Episode(group=episode.group, seed=episode.seed)
            for field in fields(Episode):
                setattr(episode, field.name, getattr(fresh, field.name))
            await self._play(episode, request, self.sampling)
        return episode

    def check_manner(self, manner: Manner) -> None:
        """Check that the player's engines can play episodes as ``manner`` states.

        Raises:
            ConfigurationError: An engine cannot report as many candidates per token as the manner needs, or the manner
                needs older weights and no engine holds them.
        """
        check_engines(manner, self.engine, self.stale_engine)

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the policy's log-probability of each id in ``ids``, given ``prompt_ids`` and the earlier ids.

        Raises:
            ConfigurationError: The engine cannot compute log-probabilities.
        """
        if not isinstance(self.engine, Scores):
            raise ConfigurationError(
                f"The engine {type(self.engine).__name__} cannot compute the log-probabilities of given "
                "tokens, which a component of this run needs: use engine='transformers'."
            )
        return await self.engine.score(prompt_ids, ids)

    def take_timing(self) -> Timing:
        """Return the times of the episodes since the last call, and set them to 0."""
        taken, self._timing = self._timing, Timing()
        return taken

    def check(self, episodes: Sequence[Episode]) -> None:
        """Raise an error if too many episodes failed.

        Raises:
            RolloutError: More than ``max_failed`` ended ``unavailable``; the message contains one cause.
        """
        counted = sum(not episode.cancelled for episode in episodes)
        if sum(episode.failed for episode in episodes) > self._max_failed * counted:
            raise RolloutError(episodes)

    def close(self) -> None:
        """Wait for running calls, close every environment and end the threads."""
        self.envs.close()

    async def _play(
        self,
        episode: Episode,
        request: EpisodeRequest,
        sampling: SamplingParams,
        replay: Replay | None = None,
        env: SingleReply | None = None,
        given: GivenTurns | None = None,
    ) -> None:
        with agent_span(_POLICY, *self._served) as span:
            await self._play_to_end(episode, request, sampling, replay, env, given)
            span.episode(episode)

    async def _play_to_end(
        self,
        episode: Episode,
        request: EpisodeRequest,
        sampling: SamplingParams,
        replay: Replay | None,
        env: SingleReply | None,
        given: GivenTurns | None,
    ) -> None:
        lent = env or self.envs.lend()
        clock = asyncio.timeout(self.budget.wall_s)
        try:
            async with clock:
                await self._episode(lent, episode, request, sampling, clock, replay, given)
        except BranchError:
            raise
        except Exception as error:
            if not (isinstance(error, TimeoutError) and clock.expired()):
                # If an engine gives up a turn, the policy is not at fault; a cut episode would be trained as a failure.
                episode.void("unavailable", traceback.format_exc())
            elif not episode.prompt_ids:
                why = (
                    f"The reset of the environment took more than Budget.wall_s={self.budget.wall_s} seconds, "
                    "the time limit of an episode."
                )
                episode.void("unavailable", why)
            else:
                episode.end = "time"
                drop_unanswered(episode)
        finally:
            lent.release()

    async def _episode(
        self,
        env: LentEnv | SingleReply,
        episode: Episode,
        request: EpisodeRequest,
        sampling: SamplingParams,
        clock: asyncio.Timeout,
        replay: Replay | None,
        given: GivenTurns | None,
    ) -> None:
        self._timing.episodes += 1
        with self._timing.measure("environment"):
            text, info = await env.reset(seed=request.seed, options=request.options)
        episode.task = env.env_id
        episode.begin(text, info)
        system = str(info.get("system") or "")
        episode.prompt_ids = self.chat.prompt(system, text)
        if request.shown is not None and (shown := request.shown.replace(QUESTION, text, 1)) != text:
            episode.shown, episode.shown_ids, episode.source = shown, self.chat.prompt(system, shown), "refined"
        sampling = replace(
            sampling,
            stop_ids=tuple({*sampling.stop_ids, *self.chat.stop_ids}),
            stop=tuple(dict.fromkeys([*sampling.stop, *info.get("stop", ())])),
        )
        until, now = clock.when(), asyncio.get_running_loop().time
        left = None if until is None else until - now()
        # The wait for a seat does not count towards the episode's time.
        clock.reschedule(None)
        prompt, manner = len(episode.played_ids), request.manner
        most = most_after(prompt, self.engine, self.budget.tokens)
        async with AsyncExitStack() as seats:
            seat = await seats.enter_async_context(open_episode(self.engine, prompt, most))
            clock.reschedule(None if left is None else now() + left)
            two = None
            if manner.stale:
                two = TwoPolicies(seat, self.stale_engine, manner.stale, request.sampling_seed, (prompt, most))
                seats.push_async_callback(two.leave)
            budget = replace(self.budget, tokens=most)
            turns = Turns(
                env,
                given or two or seat,
                self.chat,
                budget,
                self._timing,
                manner,
                replay,
                two,
                served=self._served,
            )
            await turns.play(episode, sampling, request.sampling_seed)
