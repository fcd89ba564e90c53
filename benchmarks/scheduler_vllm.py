"""The scheduling policies for real: two vLLM engines on a CPU with small caches, each in a process of its own.

    python benchmarks/scheduler_vllm.py [--episodes 96] [--blocks 64] [--policies static kv_aware kv_aware:1]

A tiny model with random weights writes episodes whose lengths are set in advance: log-normal with sigma 0.8 around 200
tokens and at most 800, in one to four turns, with a tool after each but the last (median 20 ms, one in a hundred 2 s).
All are asked for at once. ``kv_aware:1`` is that policy with ``margin=1``. A cache has 64 blocks of 32 tokens, which is
about six episodes of average length.

Pre-emptions and tokens of prompts are vLLM's own counts; recomputed is what it computed of prompts beyond what was new
in them, up to 32 tokens a turn being due to its cache holding whole blocks alone. Idle is the share of the time in
which an engine had nothing to do.

What it does not show: anything about a model of real size, where computing tokens again costs more.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from rstar2_env.rollout import Engine, Generation, SamplingParams, Scheduler

VOCABULARY, PROMPT, RESULT, MOST = 110, 40, 20, 800


def serve(pipe: Connection, blocks: int, threads: int) -> None:
    """A process with one engine: answers what comes through the pipe until it says to stop."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from rstar2_env.rollout import VllmEngine

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    shape = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 3, "head_dim": 32}
    config = Qwen3Config(
        vocab_size=VOCABULARY, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=2048, **shape
    )
    engine = VllmEngine(
        Qwen3ForCausalLM(config), max_model_len=1536, kv_cache_gib=0.05, num_gpu_blocks_override=blocks, block_size=32
    )

    async def main() -> None:
        loop, tasks = asyncio.get_running_loop(), set()

        async def answer(key: int, ids: list[int], params: SamplingParams) -> None:
            try:
                pipe.send((key, await engine.generate(ids, params)))
            except Exception as error:
                pipe.send((key, error))

        while (message := await loop.run_in_executor(None, pipe.recv)) is not None:
            if message == "stats":
                pipe.send((-1, engine.stats()))
                continue
            task = loop.create_task(answer(*message))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    pipe.send((-1, engine.capacity()))
    asyncio.run(main())
    engine.close()


class Remote:
    """The engine of another process; it notes when it had something to do."""

    def __init__(self, blocks: int, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, blocks, threads))
        self._process.start()
        theirs.close()
        self._futures: dict[int, Future[Any]] = {-1: Future()}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._capacity: int = self._futures[-1].result()
        self._keys, self._in_flight, self._since, self.busy = 0, 0, 0.0, 0.0

    def _read(self) -> None:
        try:
            while True:
                key, outcome = self._pipe.recv()
                future = self._futures[key]
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
        except (EOFError, OSError) as error:
            for future in list(self._futures.values()):
                if not future.done():
                    future.set_exception(error)

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """See ``Engine``."""
        self._keys += 1
        future = self._futures[self._keys] = Future()
        self._pipe.send((self._keys, list(ids), params))
        if not self._in_flight:
            self._since = time.monotonic()
        self._in_flight += 1
        try:
            generation: Generation = await asyncio.wrap_future(future)
            return generation
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self.busy += time.monotonic() - self._since

    def stats(self) -> Any:
        """What vLLM has counted since the start."""
        future = self._futures[-1] = Future()
        self._pipe.send("stats")
        return future.result()

    def update_weights(self, version: int, weights: Any = None) -> None:
        """See ``Engine``."""

    def capacity(self) -> int:
        """See ``Engine``."""
        return self._capacity

    def close(self) -> None:
        """See ``Engine``."""
        self._pipe.send(None)
        self._process.join()
        self._pipe.close()


async def play(engine: Scheduler, plan: tuple[list[int], list[int], list[float]]) -> int:
    """One episode as planned; returns the tokens that were new to its engine, if that kept what it had computed."""
    prompt, turns, waits = plan
    ids, new = list(prompt), 0
    async with engine.episode(len(prompt), MOST) as seat:
        for turn, tokens in enumerate(turns):
            new += len(prompt) if not turn else RESULT + 1
            ids += (await seat.generate(ids, SamplingParams(tokens))).ids
            if turn < len(waits):
                await asyncio.sleep(waits[turn])
                ids += [3 + at % 90 for at in range(RESULT)]
    return new


def plans(count: int) -> list[tuple[list[int], list[int], list[float]]]:
    """The same episodes for every policy."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        turns = int(rng.integers(1, 5))
        length = int(np.clip(200 * rng.lognormal(0, 0.8), 10 * turns, MOST - RESULT * turns))
        parts = rng.dirichlet(np.full(turns, 2.0)) * length
        waits = np.where(rng.random(turns - 1) < 0.01, 2.0, 0.02 * rng.lognormal(0, 1, turns - 1))
        prompt = [int(i) for i in rng.integers(3, VOCABULARY, PROMPT)]
        made.append((prompt, [max(1, int(part)) for part in parts], [float(wait) for wait in waits]))
    return made


async def run(scheduler: Scheduler, count: int) -> tuple[float, int]:
    """Play all; returns the seconds, and the new tokens."""
    begin = time.monotonic()
    new = await asyncio.gather(*(play(scheduler, plan) for plan in plans(count)))
    return time.monotonic() - begin, sum(new)


def main() -> None:
    """Play with every policy, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=96)
    parser.add_argument("--blocks", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--policies", nargs="*", default=["static", "least_requests", "kv_aware", "kv_aware:1"])
    arguments = parser.parse_args()
    engines = [Remote(arguments.blocks, arguments.threads) for _ in range(2)]
    as_engines: list[Engine] = list(engines)
    try:
        print(f"two engines of {engines[0].capacity()} tokens, {arguments.episodes} episodes")
        print(f"{'policy':15} {'makespan':>9} {'pre-emptions':>13} {'recomputed':>11} {'idle':>6}")
        for name in arguments.policies:
            policy, _, margin = name.partition(":")
            scheduler = Scheduler(as_engines, policy, **({"margin": float(margin)} if margin else {}))
            # Its first step lets it see the lengths; its prompts are not in the cache of the second any more.
            for measured in (False, True):
                before = [engine.stats() for engine in engines]
                for engine in engines:
                    engine.busy = 0.0
                seconds, new = asyncio.run(run(scheduler, arguments.episodes))
                after = [engine.stats() for engine in engines]
                if not measured:
                    continue
                pairs = list(zip(after, before, strict=True))
                preempted = sum(a.preemptions - b.preemptions for a, b in pairs)
                computed = sum(
                    (a.prompt_tokens - a.cached_tokens) - (b.prompt_tokens - b.cached_tokens) for a, b in pairs
                )
                again = sum((a.recomputed_tokens or 0) - (b.recomputed_tokens or 0) for a, b in pairs)
                idle = 1 - sum(engine.busy for engine in engines) / (len(engines) * seconds)
                print(
                    f"{name:15} {seconds:7.1f} s {preempted:13,} {computed - new + again:11,} {idle:6.1%}", flush=True
                )
    finally:
        for engine in engines:
            engine.close()


if __name__ == "__main__":
    main()
