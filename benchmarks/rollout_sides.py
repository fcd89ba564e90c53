"""Both sides of ``benchmarks/rollout.py``: one policy in one environment, played by ours and by TRL's loop."""

from __future__ import annotations

import itertools
import multiprocessing
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from rollout_policy import QUESTION, RESPONSE
from rollout_trainers import TrlLoop, trl_config
from transformers import AutoModelForCausalLM, AutoTokenizer

from rstar2_env.core.episode import Episode
from rstar2_env.rollout import (
    Budget,
    ChatCodec,
    Engine,
    EpisodeRequest,
    Player,
    SamplingParams,
    make_engine,
)
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.testing import StubSandbox

ENV = "rstar2/MathTool-v0"
TOKENS = 320
OUR_VLLM: dict[str, Any] = {"engine": "vllm", "max_model_len": 1024, "enforce_eager": False}
TRL_VLLM = {
    "use_vllm": True,
    "vllm_mode": "colocate",
    "vllm_max_model_length": 1024,
    "vllm_importance_sampling_correction": False,
}


@dataclass(frozen=True, slots=True)
class Played:
    """The time and the counts of one run of a side.

    Attributes:
        seconds: Wall-clock seconds.
        cpu: Seconds of CPU, all threads.
        episodes: Episodes played.
        calls: Calls of the tool that ran.
        policy_tokens: Tokens that the policy wrote.
        computed: Tokens of prompts that were computed, where the engine says.
    """

    seconds: float
    cpu: float
    episodes: int
    calls: int
    policy_tokens: int
    computed: int = 0


class SlowSandbox(StubSandbox):
    """Answers each job after the next of the given times, again and again from the start."""

    def __init__(self, waits: Sequence[float]) -> None:
        super().__init__(RESPONSE)
        self.waits = list(waits)
        self.rewind()

    def rewind(self) -> None:
        """Begin with the first time."""
        self._next = itertools.cycle(self.waits)
        self.jobs.clear()

    def run(self, job: Job) -> Outcome:
        """Wait and answer."""
        wait = next(self._next)
        if wait:
            time.sleep(wait)
        return super().run(job)


def heavy_tail(count: int, seed: int = 0, *, median: float = 0.02, tail: float = 2.0) -> list[float]:
    """Times of calls in seconds: log-normal around ``median``, and one in a hundred is ``tail``."""
    rng = np.random.default_rng(seed)
    waits = median * np.exp(0.5 * rng.standard_normal(count))
    waits[rng.permutation(count)[: round(count / 100)]] = tail
    return [float(wait) for wait in waits]


class Bench:
    """One policy, one environment, and both sides of the comparison.

    Args:
        policy: Folder of the policy.
        groups: Problems.
        group_size: Episodes of each.
        waits: Times of the tool's calls.
        engine: Name of our engine.
        trl_options: Further fields of TRL's configuration.
        **engine_options: Options of our engine.
    """

    def __init__(
        self,
        policy: Path,
        groups: int,
        group_size: int,
        *,
        waits: Sequence[float] = (0.0,),
        engine: str = "transformers",
        trl_options: Mapping[str, Any] | None = None,
        **engine_options: Any,
    ) -> None:
        self.trl_options = trl_options or {}
        self.sandbox = SlowSandbox(waits)
        self.tokenizer = AutoTokenizer.from_pretrained(policy, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(policy)
        self.groups, self.group_size = groups, group_size
        self.engine = make_engine(engine, self.model, self.tokenizer, max_rows=1024, **engine_options)
        self.player = Player(
            self.make_env,
            self.engine,
            ChatCodec(self.tokenizer),
            sampling=SamplingParams(max_tokens=1),
            budget=Budget(tokens=TOKENS),
        )
        self._trl: TrlLoop | None = None

    def make_env(self) -> gym.Env[str, str]:
        """One environment."""
        problems = [
            {"id": f"p{n}", "question": QUESTION % (17 + n, 31 + n), "answer": str((17 + n) * (31 + n))}
            for n in range(self.groups)
        ]
        plain = {"system": "", "instruction": ""}
        env: gym.Env[str, str] = gym.make(
            ENV,
            disable_env_checker=True,
            problems=problems,
            sandbox=self.sandbox,
            dialect_options=plain,
            max_turns=8,
        )
        return env

    def ours(self, seed: int) -> Played:
        """Play every episode once."""
        return self._measure(lambda: self.play(seed))

    def trl(self, seed: int) -> Played:
        """Let TRL play every episode once."""
        if self._trl is None:
            config = trl_config(self.groups * self.group_size, self.group_size, TOKENS, **self.trl_options)
            self._trl = TrlLoop(self.model, self.tokenizer, self.make_env, config)
        loop = self._trl
        return self._measure(lambda: loop.play([f"p{n}" for n in range(self.groups)], seed))

    def play(self, seed: int) -> list[Episode]:
        """Our episodes."""
        requests = [
            EpisodeRequest(
                group=number // self.group_size,
                seed=seed,
                options={"problem_id": f"p{number // self.group_size}"},
                sampling_seed=seed * 1_000_003 + number,
            )
            for number in range(self.groups * self.group_size)
        ]
        return self.player.play(requests)

    def close(self) -> None:
        """Close environments and the engine."""
        self.player.close()
        self.engine.close()

    def _measure(self, play: Callable[[], Sequence[Episode] | int]) -> Played:
        self.sandbox.rewind()
        before = computed(self.engine)
        clock, cpu = time.perf_counter(), time.process_time()
        played = play()
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        tokens = played if isinstance(played, int) else sum(sum(episode.mask) for episode in played)
        episodes = self.groups * self.group_size
        return Played(clock, cpu, episodes, len(self.sandbox.jobs), tokens, computed(self.engine) - before)


class Side:
    """One side through vLLM, in a process of its own.

    Args:
        name: ``ours`` or ``trl``.
        policy: Folder of the policy.
        groups: Problems.
        group_size: Episodes of each.
        waits: Times of the tool's calls.
    """

    def __init__(self, name: str, policy: Path, groups: int, group_size: int, waits: Sequence[float]) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=play_through_vllm, args=(theirs, name, policy, groups, group_size, waits), daemon=True
        )
        self._process.start()
        theirs.close()

    def __call__(self, seed: int) -> Played:
        """Play every episode once.

        Raises:
            EOFError: The process has failed; it has said why.
        """
        self._pipe.send(seed)
        played: Played = self._pipe.recv()
        return played

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()


def play_through_vllm(
    pipe: Connection, name: str, policy: Path, groups: int, group_size: int, waits: Sequence[float]
) -> None:
    """Play with the seeds that come, until no more do."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    bench = Bench(
        policy, groups, group_size, waits=waits, **(OUR_VLLM if name == "ours" else {"trl_options": TRL_VLLM})
    )
    try:
        while True:
            pipe.send(getattr(bench, name)(pipe.recv()))
    except EOFError:
        bench.close()


def computed(engine: Engine) -> int:
    """Tokens of prompts that an engine has computed."""
    stats = engine.stats()  # type: ignore[attr-defined]  # both engines of make_engine have it
    return int(stats.prompt_tokens - stats.cached_tokens)
