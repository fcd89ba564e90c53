"""``UnaryFeedback``: adds "try again" turns to an environment that grades one answer (UFO, arXiv 2507.14295).

Covered: decaying rewards, the penalty on repeated answers, a limit on attempts. Not covered: hints; the feedback only
states that the answer is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any

import gymnasium as gym

from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.wrappers.base import EpisodeSeeds, StepReturn, TextEnv, TextWrapper, copied, log_parts
from rstar2_env.wrappers.registry import WRAPPERS

FEEDBACK = "That answer is not right. Think it over and answer again."
_OF_THE_END = ("end", "answer", "correct", "turns", "tool_errors", "tool_calls_total", "verdict")


class UnaryFeedback(TextWrapper, gym.utils.RecordConstructorArgs):
    """Continues the episode with feedback after a wrong answer, until an answer is correct or no attempts are left.

    Each attempt is an episode of the wrapped environment from the same seed, with its own budget of turns. Success at
    attempt ``t`` (0-based) earns ``decay ** t``. At the end, ``penalty * (1 - E / T)`` is subtracted, where ``T`` is
    the number of answers and ``E`` the number of distinct answers (compared in lower case without white space). An
    attempt without an answer counts as wrong, and adds to neither ``E`` nor ``T``.

    At the end, ``info`` holds the sums of ``turns``, ``tool_errors`` and ``tool_calls_total`` over the attempts, and
    ``answer``, ``correct``, ``verdict``, ``answer_tags`` and ``end`` of the last attempt. It also has ``attempts`` (the
    number of attempts) and ``reward_components`` (``success``, ``repetition``). If an attempt is ``truncated``, the
    whole episode is ``truncated``.

    Args:
        env: The environment; an answer is correct if ``info["correct"]`` at its end is true, or its reward is positive.
        attempts: Maximum number of attempts in one episode.
        feedback: The observation after a wrong answer.
        decay: Factor on the reward for each earlier wrong attempt.
        penalty: Weight of the penalty on repetition.

    Raises:
        ConfigurationError: An option is out of its range.
    """

    @checked
    def __init__(
        self,
        env: TextEnv,
        attempts: Count = 5,
        *,
        feedback: str = FEEDBACK,
        decay: Annotated[float, Rule(least=0, most=1)] = 0.5,
        penalty: Annotated[float, Rule(least=0)] = 0.5,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, attempts=attempts, feedback=feedback, decay=decay, penalty=penalty
        )
        super().__init__(env)
        self._attempts, self._feedback, self._decay, self._penalty = attempts, feedback, decay, penalty
        self._seeds = EpisodeSeeds()
        self._start()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode with the full number of attempts."""
        self._start()
        self._seed, self._options = self._seeds.next(seed), copied(options)
        return self.env.reset(seed=self._seed, options=copied(options))

    def step(self, action: str) -> StepReturn:
        """Play a turn of the current attempt."""
        text, reward, terminated, truncated, info = self.take(action)
        if not (terminated or truncated):
            return text, 0.0, False, False, info
        self._attempt += 1
        for name in self._sums:
            self._sums[name] += int(info.get(name, 0))
        answer = info.get("answer")
        if isinstance(answer, str) and (normal := "".join(answer.lower().split())):
            self._answers.append(normal)
        right = bool(info.get("correct", reward > 0))
        if terminated and not right and self._attempt < self._attempts:
            self.env.reset(seed=self._seed, options=copied(self._options))
            going_on = {key: value for key, value in info.items() if key not in _OF_THE_END}
            return self._feedback, 0.0, False, False, going_on | {"attempts": self._attempt}
        available = info.get("end") != "unavailable"
        success = self._decay ** (self._attempt - 1) if right else 0.0
        repetition = -self._repetition() if available else 0.0
        info |= self._sums
        info["attempts"] = self._attempt
        log_parts(info, {"success": success, "repetition": repetition})
        return text, success + repetition, terminated, truncated, info

    def _start(self) -> None:
        self._attempt = 0
        self._answers: list[str] = []
        self._sums = {"turns": 0, "tool_errors": 0, "tool_calls_total": 0}

    def _repetition(self) -> float:
        if not self._answers:
            return 0.0
        return self._penalty * (1 - len(set(self._answers)) / len(self._answers))


WRAPPERS.register("unary_feedback", UnaryFeedback)
