"""Plays episodes with an engine and Gymnasium environments; every episode is a coroutine of its own.

Covered: any environment with text observations and text actions, through ``reset`` and ``step`` alone; generation and
tool calls of different episodes overlap; an exception ends its own episode as ``unavailable`` and no other; budgets of
tokens, turns and time; cancelling the rest of a group that needs no more episodes; branches. Not covered: admission by
the engine's memory, which engines do themselves (``scheduler.py`` does it for several).
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import fields, replace
from types import TracebackType
from typing import Annotated, Any, Self

from rstar2_env.core.blocking import run_blocking
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import BranchError, ConfigurationError
from rstar2_env.core.manner import PLAIN, Manner
from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.rollout.asked_turns import AskedTurns
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.engine import Engine, SamplingParams, Scores, TurnTimeoutError, most_after, open_episode
from rstar2_env.rollout.env_pool import EnvFactory, EnvPool, LentEnv
from rstar2_env.rollout.given import Given
from rstar2_env.rollout.replay import Replay
from rstar2_env.rollout.reply import OneReply
from rstar2_env.rollout.request import QUESTION, Budget, EpisodeRequest, RolloutError, Settled
from rstar2_env.rollout.spent import Spent
from rstar2_env.rollout.turns import Turns
from rstar2_env.rollout.two_policies import TwoPolicies, check_engines
from rstar2_env.rollout.written import drop_unanswered, show_instead


class Player:
    """Keeps a pool of environments and plays episodes in them; close it, or use it in a ``with`` statement.

    Args:
        make_env: Creates one environment; called at most once for each episode in flight.
        engine: Generates the turns.
        chat: Renders the conversation as ids.
        sampling: How to sample; ``max_tokens`` and ``seed`` are set for each turn, and the chat's ``stop_ids`` added.
        budget: Limits of one episode.
        max_in_flight: Maximum number of episodes played at the same time.
        max_failed: Fraction of a batch, 0 to 1, that may end ``unavailable`` before ``play`` raises.
        stale_engine: An engine with older weights, for episodes that are played so (``Manner.stale``).

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
    ) -> None:
        self.engine, self.chat, self.stale_engine = engine, chat, stale_engine
        self.encode, self.decode = chat.plain, chat.text
        self.sampling, self.budget = sampling, budget or Budget()
        self._max_in_flight, self._max_failed = max_in_flight, max_failed
        self.envs = EnvPool(make_env)
        self._spent = Spent()

    def play(
        self,
        requests: Sequence[EpisodeRequest],
        *,
        sampling: SamplingParams | None = None,
        settled: Settled | None = None,
    ) -> list[Episode]:
        """Play every request and wait for the end; ``aplay`` is the form for coroutines.

        Args:
            requests: The episodes to play.
            sampling: Overrides the player's sampling parameters.
            settled: Called about a group whenever an episode of it has ended; if it returns ``True``, the rest of the
                group ends as ``cancelled``.

        Returns:
            The episodes, in the order of the requests.

        Raises:
            RolloutError: More than ``max_failed`` of the episodes ended ``unavailable``; the message contains one
                cause.
        """
        return run_blocking(lambda: self.aplay(requests, sampling=sampling, settled=settled))

    async def aplay(
        self,
        requests: Sequence[EpisodeRequest],
        *,
        sampling: SamplingParams | None = None,
        settled: Settled | None = None,
    ) -> list[Episode]:
        """Play every request; see ``play``. Cancelling this coroutine cancels every request to the engine."""
        room = asyncio.Semaphore(self._max_in_flight)
        chosen = sampling or self.sampling
        groups: dict[int, list[int]] = {}
        for at, request in enumerate(requests):
            groups.setdefault(request.group, []).append(at)
        ended: list[Episode | None] = [None] * len(requests)
        stopped: set[int] = set()

        async def play_one(at: int, request: EpisodeRequest) -> Episode:
            episode = Episode(group=request.group, seed=request.seed)
            try:
                async with room:
                    await self._play(episode, request, chosen)
            except asyncio.CancelledError:
                if request.group not in stopped:
                    raise
                episode.void("cancelled")
                return episode
            ended[at] = episode
            others = groups[request.group]
            if settled and request.group not in stopped and settled([ended[other] for other in others]):
                stopped.add(request.group)
                for other in others:
                    if ended[other] is None:
                        tasks[other].cancel()
            return episode

        tasks = [asyncio.create_task(play_one(at, request)) for at, request in enumerate(requests)]
        try:
            episodes = list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
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
        """Play one episode, however many others play; a failure ends it as ``unavailable``.

        Args:
            group: See ``EpisodeRequest``, as for the others.
            seed: Seed of the environment's ``reset``.
            options: Options of ``reset``.
            sampling_seed: Seeds the policy's draws.
            shown: Text in place of the user's message.
            manner: How it is played.
        """
        episode = Episode(group=group, seed=seed)
        request = EpisodeRequest(group, seed, options or {}, sampling_seed, shown, manner)
        await self._play(episode, request, self.sampling)
        return episode

    async def reply(self, text: str, *, system: str = "", group: int = 0, sampling_seed: int | None = None) -> Episode:
        """Ask the policy for one turn, without an environment; the episode earns nothing.

        Args:
            text: The user's message.
            system: The system message; empty for none.
            group: Number of the episode's group.
            sampling_seed: Seeds the policy's draws.
        """
        episode = Episode(group=group)
        request = EpisodeRequest(group, None, {}, sampling_seed)
        await self._play(episode, request, self.sampling, env=OneReply(text, system))
        return episode

    async def given(
        self,
        turns: Sequence[str],
        *,
        group: int = 0,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Episode:
        """Play an episode whose turns an expert wrote; one that they do not bring to its end is ``unavailable``.

        Args:
            turns: The expert's turns as text.
            group: See ``EpisodeRequest``, as for the others.
            seed: Seed of the environment's ``reset``.
            options: Options of ``reset``.
        """
        episode = Episode(group=group, seed=seed, source="expert")
        request = EpisodeRequest(group, seed, options or {})
        await self._play(episode, request, self.sampling, given=Given(turns, self.chat))
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
        """Play one episode that begins as another did, and goes on from one of its tokens.

        Args:
            parent: The other episode.
            token: Number of tokens of ``parent.completion_ids`` that both share; within a turn of the policy, or at the
                end of an episode that was left ``OPEN``.
            options: Options of ``reset`` with which the parent was played.
            sampling_seed: Seeds the policy's draws.
            shown: Text in place of the user's message, with which the parent was played.
            manner: How it is played from there on.

        Raises:
            BranchError: The parent has no turn of the policy there, or the environment does not show the same again.
        """
        replay = Replay(parent, token)
        episode = Episode(group=parent.group, seed=parent.seed)
        request = EpisodeRequest(parent.group, parent.seed, options or {}, sampling_seed, shown, manner)
        await self._play(episode, request, self.sampling, replay)
        if not replay.over and episode.end == "time":
            episode.void("unavailable", f"The replay up to token {token} took longer than Budget.wall_s.")
        if not replay.over and not episode.failed:
            raise BranchError(
                f"The replay of an episode ended ({episode.end}) before the token {token} at which it was to branch."
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
        """Play one episode into a record; where this is cancelled, the record holds the turns until then.

        What was played of it before is played again without the engine: the environment gets the same turns, which
        keep their log-probabilities and the versions of the weights that drew them. An environment that does not show
        the same again begins anew.

        Args:
            episode: The record, with its group and its seed.
            options: Options of ``reset``.
            sampling_seed: Seeds the policy's draws.
            begun: The record of an earlier call that was cancelled; ``None`` begins the episode.
            shown: Text in place of the user's message.
            manner: How it is played.
        """
        request = EpisodeRequest(episode.group, episode.seed, options or {}, sampling_seed, shown, manner)
        replay = None if begun is None or not begun.turns else Replay(begun, None)
        try:
            await self._play(episode, request, self.sampling, replay)
        except BranchError:
            anew = Episode(group=episode.group, seed=episode.seed)
            for field in fields(Episode):
                setattr(episode, field.name, getattr(anew, field.name))
            await self._play(episode, request, self.sampling)
        return episode

    def check_manner(self, manner: Manner) -> None:
        """Check that episodes can be played so.

        Raises:
            ConfigurationError: The engine reports no candidates, or there is none with older weights.
        """
        check_engines(manner, self.engine, self.stale_engine)

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the policy's log-probability of each of ``ids`` after ``prompt_ids`` and those before it.

        Raises:
            ConfigurationError: The engine cannot do that.
        """
        if not isinstance(self.engine, Scores):
            raise ConfigurationError(
                f"The engine {type(self.engine).__name__} does not compute log-probabilities of given tokens, which a "
                "part of this run needs; use engine='transformers'."
            )
        return await self.engine.score(prompt_ids, ids)

    def take_spent(self) -> Spent:
        """Where the time of the episodes since the last call went."""
        taken, self._spent = self._spent, Spent()
        return taken

    @property
    def max_in_flight(self) -> int:
        """Maximum number of episodes played at the same time."""
        return self._max_in_flight

    def check(self, episodes: Sequence[Episode]) -> None:
        """Check how many episodes failed.

        Raises:
            RolloutError: More than ``max_failed`` of them ended ``unavailable``; the message contains one cause.
        """
        counted = sum(not episode.cancelled for episode in episodes)
        if sum(episode.failed for episode in episodes) > self._max_failed * counted:
            raise RolloutError(episodes)

    def close(self) -> None:
        """Close every environment and end the threads, once the calls in them have ended."""
        self.envs.close()

    def __enter__(self) -> Self:
        """Return the player itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close the player."""
        self.close()

    async def _play(
        self,
        episode: Episode,
        request: EpisodeRequest,
        sampling: SamplingParams,
        replay: Replay | None = None,
        env: OneReply | None = None,
        given: Given | None = None,
    ) -> None:
        lent = env or self.envs.lend()
        clock = asyncio.timeout(self.budget.wall_s)
        try:
            async with clock:
                await self._episode(lent, episode, request, sampling, clock, replay, given)
        except BranchError:
            raise
        except Exception as error:
            late = isinstance(error, TurnTimeoutError) or (isinstance(error, TimeoutError) and clock.expired())
            if not late:
                episode.void("unavailable", traceback.format_exc())
            elif not episode.prompt_ids:
                why = f"The environment's reset took more than Budget.wall_s={self.budget.wall_s} seconds."
                episode.void("unavailable", why)
            else:
                episode.end = "time"
                drop_unanswered(episode)
        finally:
            lent.release()

    async def _episode(
        self,
        env: LentEnv | OneReply,
        episode: Episode,
        request: EpisodeRequest,
        sampling: SamplingParams,
        clock: asyncio.Timeout,
        replay: Replay | None,
        given: Given | None,
    ) -> None:
        self._spent.episodes += 1
        with self._spent.in_environment():
            text, info = await env.reset(seed=request.seed, options=request.options)
        episode.task = env.env_id
        episode.begin(text, info)
        system = str(info.get("system") or "")
        episode.prompt_ids = self.chat.prompt(system, text)
        if request.shown is not None and (shown := request.shown.replace(QUESTION, text, 1)) != text:
            show_instead(episode, shown, self.chat.prompt(system, shown))
        sampling = replace(
            sampling,
            stop_ids=tuple({*sampling.stop_ids, *self.chat.stop_ids}),
            stop=tuple(dict.fromkeys([*sampling.stop, *info.get("stop", ())])),
        )
        until, now = clock.when(), asyncio.get_running_loop().time
        left = None if until is None else until - now()
        # The time spent waiting for a place does not count as anybody's turn.
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
            asked = AskedTurns(self._spent.timed(given or two or seat), manner, replay, two)
            turns = Turns(env, asked, self.chat, replace(self.budget, tokens=most), self._spent)
            await turns.play(episode, sampling, request.sampling_seed)
