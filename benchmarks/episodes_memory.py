"""Memory of many episodes in flight, the engine aside: environments, threads, conversations, tokens.

    python benchmarks/episodes_memory.py [--episodes 1024] [--turns 5] [--tokens 400]

Every episode is ``rstar2/MathTool-v0`` with a stub for its sandbox; all of them have played some turns when their tools
are made to wait together. Then the resident memory of this process is compared with that before the first episode, with
one episode played to its end already, so that what is loaded once is not counted.

What it does not show: the engine's cache, and the sandbox's own processes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

import rstar2_env  # noqa: F401  # registers the environments
from rstar2_env.rollout import Budget, ChatCodec, EpisodeRequest, Generation, Player, SamplingParams
from rstar2_env.testing import StubSandbox


class WordyEngine:
    """Writes a call after so many tokens of thought, at once."""

    def __init__(self, codec: ChatCodec, tokens: int) -> None:
        body = {"name": "execute_python_code_with_standard_io", "arguments": {"code": "print(1)", "input": ""}}
        call = f"<tool_call>{json.dumps(body)}</tool_call>"
        tokenizer = codec.tokenizer
        self._tail = [*tokenizer.encode(call, add_special_tokens=False), codec.stop_ids[0]]
        self._thought = tokenizer.encode("thinking ", add_special_tokens=False) * tokens
        self._tokens = tokens

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """See ``Engine``."""
        await asyncio.sleep(0)
        said = self._thought[: max(0, self._tokens - len(self._tail))] + self._tail
        return Generation(said, [-0.5 - 1e-6 * at for at in range(len(said))], "stop", 0)

    def update_weights(self, version: int, weights: Any = None) -> None:
        """See ``Engine``."""

    def capacity(self) -> int:
        """See ``Engine``."""
        return 1 << 30

    def close(self) -> None:
        """See ``Engine``."""


def resident_mb() -> float:
    """Resident memory of this process."""
    gc.collect()
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) / 1024


def measure(codec: ChatCodec, episodes: int, turns: int, tokens: int) -> dict[str, float]:
    """Megabytes of so many episodes that wait for their tools in turn ``turns``."""
    everyone, go, lock = threading.Event(), threading.Event(), threading.Lock()
    waiting = 0

    class Gate(gym.Wrapper[str, str, str, str]):
        """Holds the step of the last turn until everyone is there."""

        def reset(self, **options: Any) -> Any:
            self.steps = 0
            return self.env.reset(**options)

        def step(self, action: str) -> Any:
            nonlocal waiting
            self.steps += 1
            if self.steps == turns and episodes_now > 1:
                with lock:
                    waiting += 1
                    if waiting == episodes_now:
                        everyone.set()
                go.wait(300)
            return self.env.step(action)

    def make() -> gym.Env[str, str]:
        env = gym.make(
            "rstar2/MathTool-v0",
            sandbox=StubSandbox("x" * 200),
            problems=[{"question": "6*7?", "answer": "42"}],
            max_turns=turns + 1,
        )
        return Gate(env)

    engine = WordyEngine(codec, tokens)
    options: dict[str, Any] = {"sampling": SamplingParams(1), "budget": Budget(tokens=1 << 20)}
    found: dict[str, float] = {}
    episodes_now = 1
    with Player(make, engine, codec, max_in_flight=episodes, **options) as player:
        player.play([EpisodeRequest(seed=0)])
        before = resident_mb()
        episodes_now = episodes

        def watch() -> None:
            everyone.wait(300)
            found["MB in flight"] = resident_mb() - before
            found["threads"] = float(threading.active_count())
            go.set()

        watcher = threading.Thread(target=watch)
        watcher.start()
        played = player.play([EpisodeRequest(seed=i) for i in range(episodes)])
        watcher.join()
        found["tokens an episode"] = sum(len(e.prompt_ids) + len(e.completion_ids) for e in played) / len(played)
        found["failed"] = float(sum(episode.failed for episode in played))
    return found


def main() -> None:
    """Print what it comes to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=400)
    arguments = parser.parse_args()
    from rstar2_env.trainers.demonstration.tiny import tiny_tokenizer

    codec = ChatCodec(tiny_tokenizer())
    for name, value in measure(codec, arguments.episodes, arguments.turns, arguments.tokens).items():
        print(f"{name:20} {value:10.1f}")


if __name__ == "__main__":
    main()
