"""``ToolEnv``: a multi-turn text environment with tools, the base class of environment families.

Covered: the turn loop, its budgets, the status of every call, the reward for a correct final answer, rendering. A
family that needs more overrides only ``begin``, ``answer_turn``, ``end_info`` or ``answer_tags``. Not covered: sources
of problems (``rstar2_env.problems``), the format of calls and answers (``rstar2_env.dialects``), the comparison of
answers (``rstar2_env.verification``), the execution of programs (``rstar2_env.sandbox``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError, EpisodeOverError
from rstar2_env.core.options.declare import Count, Rule, Seconds, check_option, checked
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import encodable
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.env.grading import Grader
from rstar2_env.env.spaces import UnicodeText, check_action
from rstar2_env.env.transcript import Transcript
from rstar2_env.env.turn_result import Ended, GoesOn, StepReturn, call_counts
from rstar2_env.problems import Problem, ProblemSource, load_problems
from rstar2_env.tools import CallContext, ToolChain, ToolResult
from rstar2_env.tools.by_name import ToolChoice, make_tools
from rstar2_env.tools.cut import Tokenizer, cut_middle, make_tokenizer
from rstar2_env.verification import Reason

_NOTE_LENGTH = 64
"""Characters reserved for the note that ``cut_middle`` inserts."""


class ToolEnv(gym.Env[str, str]):
    """Text in, text out: a problem, turns with tool calls, a final answer.

    ``rstar2/MathTool-v0`` documents the contract (spaces, ``info``, ends of episodes, reward) in full.

    Args:
        problems: The source of the problems; any value that ``load_problems`` accepts.
        tools: The tools that the policy may call: tools, or names such as ``mcp:./server.py`` (``tools.by_name``).
        grader: Function that grades an answer to a problem; ``None`` if a subclass overrides ``answer_turn``.
        dialect: A dialect, or its name.
        dialect_options: Options of a dialect given by name.
        split: Split of a procedural family or of a source that has splits.
        holdout: Share of a file's or a list's problems that form the split ``"test"``; the rest form ``"train"``.
        max_turns: Maximum turns of the policy in one episode.
        max_tokens: Maximum tokens of policy and tools together in one episode, counted with ``tokenizer``; ``None`` for
            no limit.
        max_seconds: Maximum wall-clock seconds of one episode; ``None`` for no limit. With it, episodes are not
            reproducible.
        tokenizer: Counts tokens for ``max_tokens``; a tokenizer, or its folder or hub name.
        timings: Add the wall-clock seconds of every call to ``info``, which is then no longer deterministic.
        max_text: Maximum length of an action or observation, in characters, at least 1024. A longer action is an error;
            longer results are cut in the middle.
        render_mode: ``"ansi"``, ``"human"`` or ``None``.

    Raises:
        ConfigurationError: An option is out of its range.
    """

    # Not a ClassVar: Gymnasium declares it as an instance variable.
    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012

    @checked
    def __init__(
        self,
        *,
        problems: Any,
        tools: Sequence[ToolChoice],
        grader: Grader | None,
        dialect: Dialect | str = "rstar2",
        dialect_options: Mapping[str, Any] | None = None,
        split: str = "train",
        holdout: Annotated[float, Rule(least=0, below=1)] = 0.0,
        max_turns: Count = 10,
        max_tokens: Count | None = None,
        max_seconds: Seconds | None = None,
        tokenizer: Tokenizer | str | None = None,
        timings: bool = False,
        max_text: Annotated[int, Rule(least=1024)] = 1 << 20,
        render_mode: str | None = None,
    ) -> None:
        if max_tokens is not None and tokenizer is None:
            raise ConfigurationError(
                "The option `max_tokens` needs a tokenizer, which counts the tokens: pass tokenizer=."
            )
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            check_option("render_mode", render_mode, str, Rule(choices=tuple(self.metadata["render_modes"])))
        if grader is None and type(self).answer_turn is ToolEnv.answer_turn:
            raise ConfigurationError("An environment without a grader must override the method answer_turn().")
        self.observation_space = UnicodeText(max_text)
        self.action_space = UnicodeText(max_text)
        self.render_mode = render_mode
        self.problems: ProblemSource = load_problems(problems, split=split, holdout=holdout)
        self.dialect: Dialect = make_dialect(dialect, **(dialect_options or {}))
        self.tools = ToolChain(make_tools(tools))
        only = getattr(self.dialect, "only_tool", None)
        if only is not None and (others := [spec.name for spec in self.tools.specs if spec.name != only]):
            raise ConfigurationError(
                f"In the dialect {self.dialect.name!r}, the policy can call only {only!r}, but not "
                f"{', '.join(others)}: leave these tools out, or use a dialect in which calls have names "
                "(dialect=rstar2)."
            )
        self.grader = grader
        self._max_turns, self._max_tokens, self._max_seconds = max_turns, max_tokens, max_seconds
        self._tokenizer, self._timings = make_tokenizer(tokenizer), timings
        self._problem: Problem | None = None
        self._max_text = max_text
        self._over = True
        self._turns: list[str] = []
        self._statuses: list[tuple[ToolStatus, bool]] = []
        self._transcript = Transcript()

    @property
    def problem(self) -> Problem:
        """The problem of the running episode. It holds the gold answer: agents and trainers must not read it.

        Raises:
            EpisodeOverError: No episode has started yet.
        """
        if self._problem is None:
            raise EpisodeOverError("There is no problem yet: call reset() first.")
        return self._problem

    @property
    def turns(self) -> Sequence[str]:
        """The policy's turns in this episode, including the current turn."""
        return tuple(self._turns)

    def begin(self, options: Mapping[str, Any]) -> None:
        """Prepare an episode; ``reset`` calls this after it has chosen ``problem``. Override it to add preparations.

        Args:
            options: The ``options`` that ``reset`` received.

        Raises:
            ConfigurationError: An override rejects the problem because it does not belong to this environment; no
                episode starts.
        """

    def answer_turn(self, turn: str) -> Ended | GoesOn:
        """Grade a turn without a call. Override it to grade in another way, or to continue after an answer.

        By default, ``grader`` grades the last answer of all turns, and the episode ends with ``info["verdict"]``
        (``Verdict.record``). An override that calls ``grader`` itself should set the same key.

        Args:
            turn: The policy's turn; ``turns`` holds all turns.
        """
        answer = self.dialect.answer(self._turns)
        if answer is None:
            return Ended(None, end="no_answer")
        assert self.grader is not None  # __init__ refuses None unless answer_turn is overridden
        verdict = self.grader(self.problem, answer)
        info = {"verdict": verdict.record()}
        if verdict.reason is Reason.UNAVAILABLE:
            return Ended(answer, end="unavailable", info=info)
        return Ended(answer, float(verdict.correct), verdict.correct, info=info)

    def answer_tags(self) -> int:
        """Return the number of marked answers so far. Override it if an episode asks for several answers."""
        return self.dialect.answer_tags(self._turns)

    def end_info(self, end: str) -> Mapping[str, Any]:
        """Return the keys to add to ``info`` at the end of every episode, even one that a budget ended.

        By default there are none; override it to add keys.

        Args:
            end: The value of ``info["end"]``.
        """
        return {}

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seed that determines the chosen problem and the random states of tool calls.
            options: ``{"problem_id": str}`` selects a problem of the source; ``{"problem": Problem | dict}`` gives
                the problem itself.

        Returns:
            The user's first message, and ``info`` with ``problem_id``, ``tools`` (schemas), ``system`` and ``stop``
            (strings after which an engine should stop).

        Raises:
            ConfigurationError: ``options`` holds an unknown key, or the message is longer than ``max_text``.
            UnknownNameError: The source does not have a problem with that id.
        """
        super().reset(seed=seed)
        self._over = True  # if reset fails, step must raise an error
        self.tools.end_episode()
        self._problem = self._choose(dict(options or {}))
        self._episode_seed = int(self.np_random.integers(0, 2**63))
        self._turns, self._statuses, self._tokens = [], [], 0
        self._started = time.monotonic()
        self.begin(options or {})
        specs = self.tools.specs
        system, user = self.dialect.system(specs), encodable(self.dialect.user(self._problem.question))
        if len(user) > self._max_text:
            raise ConfigurationError(
                f"The message with the problem {self._problem.id!r} has {len(user)} characters, more than "
                f"max_text={self._max_text}: raise max_text, or leave the problem out."
            )
        self._over = False
        self._transcript.start(system, user)
        self._show()
        info = {
            "problem_id": self._problem.id,
            "tools": [spec.schema() for spec in specs],
            "system": system,
            "stop": list(self.dialect.stop),
        }
        return user, info

    def step(self, action: str) -> StepReturn:
        """Play one whole turn of the policy.

        Args:
            action: The turn's text: reasoning, calls, an answer.

        Returns:
            The next observation (empty at the end), the reward, ``terminated``, ``truncated`` and ``info``.

        Raises:
            EpisodeOverError: The episode is over, or no episode has started.
            TypeError: The action is not a string.
            ConfigurationError: The action is longer than ``max_text``.
        """
        if self._over:
            state = "There is no episode yet" if self._problem is None else "The episode is over"
            raise EpisodeOverError(f"{state}: call reset() to start an episode.")
        check_action(action, self.action_space, " (max_text): raise max_text, or let the engine stop earlier")
        action = encodable(action)
        turn = len(self._turns)
        self._turns.append(action)
        self._count(action)
        calls = self.dialect.calls(action)
        if not calls:
            return self._answered(action)
        if (end := self._budget_spent()) is not None:
            return self._end(action, Ended(None), end)
        results: list[ToolResult] = []
        for call in calls:
            result = self.tools.call(call, CallContext(self._episode_seed, len(self._statuses), turn))
            results.append(result)
            self._statuses.append((result.status, result.injected))
            if result.status is ToolStatus.UNAVAILABLE and not result.injected:
                return self._end(action, Ended(None), "unavailable", results)
            if len(results) < len(calls) and self._time_is_up():
                return self._end(action, Ended(None), "time", results)
        text = self._shown(self.dialect.results(results))
        self._count(text)
        return self._on(action, text, results)

    def render(self) -> str | None:
        """Return the conversation so far in colour, with the status of each call; ``None`` in ``"human"`` mode."""
        if self.render_mode == "ansi":
            return self._transcript.text()
        return None

    def close(self) -> None:
        """Release the tools' sandbox."""
        self.tools.close()

    def _choose(self, options: dict[str, Any]) -> Problem:
        unknown = set(options) - {"problem_id", "problem"}
        if unknown or len(options) > 1:
            raise ConfigurationError(
                f'reset(options=) accepts only "problem_id" or "problem", not {sorted(map(str, options))}.'
            )
        if "problem_id" in options:
            check_option("problem_id", options["problem_id"], str)
            return self.problems.get(options["problem_id"])
        if "problem" in options:
            return load_problems([options["problem"]]).sample(self.np_random)
        return self.problems.sample(self.np_random)

    def _count(self, text: str) -> None:
        if self._max_tokens is not None and self._tokenizer is not None:
            self._tokens += len(self._tokenizer.encode(text, add_special_tokens=False))

    def _budget_spent(self) -> str | None:
        if len(self._turns) >= self._max_turns:
            return "turns"
        if self._max_tokens is not None and self._tokens >= self._max_tokens:
            return "tokens"
        return "time" if self._time_is_up() else None

    def _time_is_up(self) -> bool:
        return self._max_seconds is not None and time.monotonic() - self._started >= self._max_seconds

    def _answered(self, action: str) -> StepReturn:
        result = self.answer_turn(action)
        if isinstance(result, Ended):
            return self._end(action, result, result.end)
        text = self._shown(result.text)
        self._count(text)
        if (end := self._budget_spent()) is not None:
            return self._end(action, Ended(None, info=result.info), end)
        return self._on(action, text, (), result.info)

    def _on(
        self, action: str, text: str, results: Sequence[ToolResult], more: Mapping[str, Any] | None = None
    ) -> StepReturn:
        self._transcript.turn(action, results, text)
        self._show()
        # answer_tags is set at every step, not only at the end, since the caller may end the episode after any turn.
        info = self._info(results) | {"answer_tags": self.answer_tags()} | dict(more or {})
        return text, 0.0, False, False, info

    def _end(self, action: str, ended: Ended, end: str, results: Sequence[ToolResult] = ()) -> StepReturn:
        self._over = True
        self.tools.end_episode()
        terminated = end in ("answered", "no_answer")
        self._transcript.end(action, results, end, ended.correct)
        self._show()
        info = self._info(results)
        info |= {
            "end": end,
            "answer": ended.answer,
            "correct": ended.correct,
            "turns": len(self._turns),
            **call_counts(status for status, injected in self._statuses if not injected),
            "answer_tags": self.answer_tags(),
        }
        info |= dict(ended.info)
        info |= dict(self.end_info(end))
        return "", float(ended.reward), terminated, not terminated, info

    def _shown(self, text: str) -> str:
        text = encodable(text)
        return text if len(text) <= self._max_text else cut_middle(text, self._max_text - _NOTE_LENGTH)[0]

    def _info(self, results: Sequence[ToolResult]) -> dict[str, Any]:
        records = [result.record() for result in results]
        if self._timings:
            records = [{**record, "wall_s": result.wall_s} for record, result in zip(records, results, strict=True)]
        return {"role": self.dialect.role, "tool_calls": records}

    def _show(self) -> None:
        if self.render_mode == "human":
            print(self._transcript.news(), flush=True)
