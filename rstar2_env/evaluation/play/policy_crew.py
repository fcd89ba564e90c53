"""A model as the player of an evaluation: it plays in the same tool loop as in training, token for token.

Every episode is a coroutine in one event loop; environments run in threads. Not covered: how a model is loaded
(``rstar2_env.rollout.pretrained``), the loop itself (``rstar2_env.rollout.player``).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.extras import needs_torch
from rstar2_env.core.options.declare import CheckedOptions, call_with_options, option
from rstar2_env.core.progress import progress
from rstar2_env.core.stop_request import Stop
from rstar2_env.evaluation.figures.tally import cause_of
from rstar2_env.evaluation.play.crew import Results, TaskJudge, Tasks
from rstar2_env.evaluation.play.plan import Task
from rstar2_env.evaluation.play.played import PlayedEpisode
from rstar2_env.evaluation.play.scores import EpisodeScores, OfferedPolicy, options_of
from rstar2_env.models.chat_template import check_chat_template
from rstar2_env.rewards.base import Need
from rstar2_env.rollout.engines.registry import ENGINES

if TYPE_CHECKING:
    from rstar2_env.rollout import ChatCodec, Engine, EnvFactory, Player

NAME = "policy"
"""Name of the player in results if a model plays."""

_ENOUGH_FAILED = 8
_JUDGES = 16


class NothingPlayedError(Rstar2Error, RuntimeError):
    """Every episode so far ended ``unavailable``; the message states why one of them failed."""


@dataclass(frozen=True)
class PolicyOptions(CheckedOptions):
    """Options for loading a model, for sampling and for an episode's budgets; training uses the same names.

    Attributes:
        temperature: Sampling temperature; 0 is greedy.
        top_p: Nucleus sampling threshold; 1 disables it.
        top_k: Sample from the k most likely tokens; 0 disables it.
        max_episode_tokens: Token budget of an episode after its prompt, including the environment's tokens.
        max_turn_tokens: Token budget of one turn; ``None`` allows the rest of the episode's budget.
        max_episode_seconds: Wall-clock limit of an episode in seconds, not counting its time in the engine's queue;
            ``None`` for no limit. With a limit the figures depend on the machine's load.
        max_in_flight: Largest number of episodes played at the same time.
        revision: Branch, tag or commit of a model on the hub; ``None`` for the hub's default branch.
        dtype: Precision; ``"auto"`` is bfloat16 on an accelerator that supports it, else float32.
        attn_implementation: Attention implementation of transformers; ``None`` lets transformers choose.
        trust_remote_code: Run the code that comes with a model on the hub.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.
        chat_template_options: Variables passed to the template.

    Raises:
        ConfigurationError: A value is out of its range.
    """

    temperature: float = option(1.0, least=0)
    top_p: float = option(1.0, above=0, most=1)
    top_k: int = option(0, least=0)
    max_episode_tokens: int = option(4096, least=1)
    max_turn_tokens: int | None = option(None, least=1)
    max_episode_seconds: float | None = option(None, above=0, unit="seconds")
    max_in_flight: int = option(256, least=1)
    revision: str | None = None
    dtype: str = option("auto", choices=("auto", "float32", "bfloat16", "float16"))
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    chat_template: str | None = None
    chat_template_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is out of its range; the message names the option.
        """
        super().__post_init__()
        check_chat_template(self.chat_template)

    def loading(self) -> dict[str, Any]:
        """Return, by name, the options with which a model is loaded."""
        sampling = ("temperature", "top_p", "top_k", "max_episode_tokens", "max_turn_tokens", "max_episode_seconds")
        return {name: value for name, value in asdict(self).items() if name not in sampling}

    def sampled(self) -> dict[str, Any]:
        """Return the options that affect an episode's tokens, by name: all except ``max_in_flight``."""
        return {name: value for name, value in asdict(self).items() if name != "max_in_flight"}


def policy_options(given: Mapping[str, Any] | PolicyOptions | None) -> PolicyOptions:
    """Make ``PolicyOptions`` from a mapping of option names to values; ``None`` gives the defaults.

    Raises:
        ConfigurationError: An option is unknown, or a value is out of its range.
    """
    if isinstance(given, PolicyOptions):
        return given
    made: PolicyOptions = call_with_options("model", PolicyOptions, given or {}, prefix="model.")
    return made


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in an engine, which several evaluations may share; the caller that loaded it closes it.

    Attributes:
        path: Folder or name of the model.
        engine_name: Name of the engine.
        engine: The engine, which generates tokens.
        chat: Renders conversations as token ids.
        determinism: Sentence that states whether the engine gives the same tokens for the same seeds.
    """

    path: str
    engine_name: str
    engine: Engine
    chat: ChatCodec
    determinism: str

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()


def load_policy(
    path: str, options: PolicyOptions, *, engine: str, engine_options: Mapping[str, Any], seed: int
) -> LoadedModel:
    """Load a model into an engine.

    Args:
        path: Folder or hub name of the model.
        options: The options; only the options in ``PolicyOptions.loading`` are used.
        engine: Name of the engine.
        engine_options: Options of the engine.
        seed: Seed for random draws that do not have their own seed.

    Raises:
        ConfigurationError: There is no such model, or an option does not fit.
        UnknownNameError: There is no such engine.
        MissingExtraError: A package is not installed.
    """
    kind = ENGINES.get(engine)
    # Imported here, since torch takes seconds, and agents do not need it.
    with progress("importing torch"), needs_torch(f"The model {path}"):
        from rstar2_env.rollout.pretrained import Pretrained, open_pretrained

    loading = options.loading()
    rows = loading.pop("max_in_flight")
    made, chat = open_pretrained(Pretrained(path, engine, dict(engine_options), **loading), max_rows=rows, seed=seed)
    return LoadedModel(path, engine, made, chat, kind.determinism)


def policy_record(path: str, engine: str, options: PolicyOptions) -> dict[str, Any]:
    """Return the record of a model that plays; see ``Crew.record``.

    Args:
        path: Folder or hub name of the model.
        engine: Name of the engine.
        options: Options of sampling and of an episode's budgets.
    """
    return {"agent": NAME, "model": path, "engine": engine, "model_options": options.sampled()}


class PolicyCrew:
    """Plays the episodes of an evaluation with a model, many at the same time.

    Args:
        make_env: Makes an environment.
        model: The model in its engine; ``close`` does not close the model.
        options: Options of sampling and of an episode's budgets.
        judge: Judges chains of thought; ``None`` for no judge.

    Attributes:
        env: An environment to read specifications from.
        record: The model, the engine, and the options of sampling.
        determinism: Sentence that states whether the engine gives the same tokens for the same seeds.
        lacking: Inputs that reward components can need (``Need``) but the engine cannot provide, mapped to the reasons:
            ``lm`` if the engine does not compute log-probabilities of given tokens, else none.
    """

    def __init__(
        self, make_env: EnvFactory, model: LoadedModel, options: PolicyOptions, judge: TaskJudge | None = None
    ) -> None:
        from rstar2_env.rollout import Budget, Player, SamplingParams
        from rstar2_env.rollout.engine import Scores as ScoresTokens

        self._options, self._judge = options, judge
        self.record = policy_record(model.path, model.engine_name, options)
        self.determinism = model.determinism
        why = f"which the engine {model.engine_name!r} does not compute for given tokens: use transformers."
        self.lacking: Mapping[Need, str] = {} if isinstance(model.engine, ScoresTokens) else {"lm": why}
        self.env: gym.Env[str, str] = make_env()
        self._player: Player = Player(
            make_env,
            model.engine,
            model.chat,
            sampling=SamplingParams(
                max_tokens=1, temperature=options.temperature, top_p=options.top_p, top_k=options.top_k
            ),
            budget=Budget(
                tokens=options.max_episode_tokens,
                turn_tokens=options.max_turn_tokens,
                wall_s=options.max_episode_seconds,
            ),
            max_in_flight=options.max_in_flight,
            model=model.path,
            provider=model.engine_name,
        )
        self._ended = self._failed = 0
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._thread: threading.Thread | None = None

    def threads(
        self, tasks: Tasks, count: int, results: Results, stop: Stop, scores: EpisodeScores | None = None
    ) -> Sequence[threading.Thread]:
        """Return one thread with an event loop; see ``Crew.threads``."""
        in_flight = min(count, self._options.max_in_flight)

        def run() -> None:
            try:
                asyncio.run(self._play_all(tasks, in_flight, results, stop, scores))
            except asyncio.CancelledError:
                pass
            except BaseException as error:
                results.put(error)
            finally:
                results.put(None)

        self._thread = threading.Thread(target=run, name="evaluate", daemon=True)
        return [self._thread]

    def close(self) -> None:
        """Cancel the episodes in flight and close the environments."""
        if self._running is not None and self._thread is not None and self._thread.is_alive():
            loop, running = self._running
            with contextlib.suppress(RuntimeError):  # the loop has just closed
                loop.call_soon_threadsafe(running.cancel)
            self._thread.join()
        self._player.close()
        self.env.close()

    async def _play_all(
        self, tasks: Tasks, in_flight: int, results: Results, stop: Stop, scores: EpisodeScores | None
    ) -> None:
        current = asyncio.current_task()
        assert current is not None
        self._running = (asyncio.get_running_loop(), current)
        # Limits all episodes, including those that scores branch off from others.
        room = asyncio.Semaphore(self._options.max_in_flight)
        offer = partial(OfferedPolicy, self._player, room)
        with ThreadPoolExecutor(_JUDGES, thread_name_prefix="rstar2-judge") as judges:

            async def play_some() -> None:
                while not stop() and (task := tasks.take()) is not None:
                    with stop.flight():
                        async with room:
                            played = await self._play(task, judges)
                        scored = [played] if scores is None else await scores.score(played, offer)
                    for one in scored:
                        results.put(one)
                    self._check(played.episode)

            players = [asyncio.create_task(play_some()) for _ in range(in_flight)]
            try:
                await asyncio.gather(*players)
            finally:
                for player in players:
                    player.cancel()
                await asyncio.gather(*players, return_exceptions=True)

    async def _play(self, task: Task, judges: ThreadPoolExecutor) -> PlayedEpisode:
        began = time.perf_counter()
        episode = await self._player.episode(
            group=task.index, seed=task.seed, options=options_of(task), sampling_seed=task.draws
        )
        seconds = time.perf_counter() - began
        episode.usage = _usage(episode)
        chain = None
        if self._judge is not None:
            chain = await asyncio.get_running_loop().run_in_executor(judges, self._judge, task, episode)
        return PlayedEpisode(task, episode, seconds, chain)

    def _check(self, episode: Episode) -> None:
        """Count an ended episode; raise ``NothingPlayedError`` if the first ``_ENOUGH_FAILED`` episodes failed."""
        self._ended += 1
        self._failed += episode.failed
        if self._ended == self._failed == _ENOUGH_FAILED:
            raise NothingPlayedError(
                f"None of the first {self._ended} episodes could be played. The cause in the last one: "
                f"{cause_of(episode)}"
            )


def _usage(episode: Episode) -> dict[str, float]:
    """Return the ``requests``, ``prompt_tokens`` and ``completion_tokens`` of an episode, as endpoints name them.

    The prompt tokens of every turn are counted in full, even if the engine has cached them.
    """
    prompt = len(episode.prompt_ids)
    return {
        "requests": float(episode.turns),
        "prompt_tokens": float(sum(prompt + turn.start for turn in episode.steps)),
        "completion_tokens": float(episode.policy_tokens),
    }
