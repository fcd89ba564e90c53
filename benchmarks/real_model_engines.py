"""Engines on one real model: tokens per second and CPU time of the same episodes with tools.

    python benchmarks/real_model_engines.py --model FOLDER [--episodes 32] [--rounds 3] [--engines ours generate]
                                            [--json FILE]

``ours`` is the transformers engine, ``generate`` Hugging Face's ``generate`` on all episodes that wait for a turn,
``vllm`` this package's vLLM engine, if vLLM is installed, and ``batching`` transformers' own continuous batching. Every
engine plays the same episodes: a prompt, then turns of given lengths, and between two turns the answer of a tool, which
takes a time drawn from a heavy tail. Tokens are sampled, and no token ends a turn, so that each engine reads and writes
as many. Each engine has its own process, and they take turns, so that all meet the same load of the machine; a figure
is the median of the rounds, after one that is not counted. An engine that fails, or takes longer than ``--patience``
seconds for a round, is reported and left out.

Each run is written to ``--json`` when it ends; a later call with the same arguments runs what is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from real_model_steps import make_model
from rollout_sides import heavy_tail

from rstar2_env.rollout import Generation, SamplingParams

ENGINES = ("ours", "generate", "vllm", "batching")
GATHER_S = 0.05
"""Seconds for which ``generate`` waits for further episodes after the first of a batch."""


@dataclass(frozen=True)
class Episodes:
    """The episodes of a round.

    Attributes:
        count: Number of episodes.
        prompt: Tokens of a prompt; groups of 8 share it.
        turns: Turns of an episode.
        turn: Mean tokens of a turn.
        answer: Tokens of a tool's answer.
        words: Token ids are below this, and below the size of the vocabulary.
    """

    count: int = 32
    prompt: int = 120
    turns: int = 3
    turn: int = 40
    answer: int = 24
    words: int = 20_000

    @property
    def written(self) -> int:
        """Tokens that an engine writes in a round."""
        return int(self.lengths().sum())

    def lengths(self) -> np.ndarray:
        """Tokens of each turn of each episode, (episodes, turns): geometric, as of texts that end at any token."""
        lengths = np.random.default_rng(0).geometric(1 / self.turn, size=(self.count, self.turns))
        return np.clip(lengths, 4, 4 * self.turn)

    async def play(self, engine: Any, number: int) -> None:
        """Play all episodes at once.

        Args:
            engine: The engine.
            number: Number of the round, which seeds tokens and draws.

        Raises:
            RuntimeError: A turn has more or fewer tokens than were asked for.
        """
        lengths, waits = self.lengths(), heavy_tail(self.count * self.turns, tail=0.5)

        async def episode(place: int) -> None:
            rng = np.random.default_rng([number, place // 8])
            ids = rng.integers(4, self.words, size=self.prompt).tolist()
            for turn, length in enumerate(lengths[place].tolist()):
                seed = hash((number, place, turn)) % (1 << 31)
                found = await engine.generate(ids, SamplingParams(length, seed=seed))
                if len(found.ids) != length:
                    raise RuntimeError(f"a turn has {len(found.ids)} tokens, and {length} were asked for")
                ids += found.ids
                await asyncio.sleep(waits[place * self.turns + turn])
                ids += rng.integers(4, self.words, size=self.answer).tolist()

        await asyncio.gather(*map(episode, range(self.count)))


class HfGenerate:
    """``model.generate`` on batches: all requests that wait when the last batch ends.

    Args:
        model: A causal language model.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._thread = model, ThreadPoolExecutor(1)
        self._waiting: list[tuple[list[int], SamplingParams, asyncio.Future[Generation]]] = []
        self._task: asyncio.Task[None] | None = None

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Continue ``ids`` together with the other requests that wait."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Generation] = loop.create_future()
        self._waiting.append((list(ids), params, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run())
        return await future

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    async def _run(self) -> None:
        await asyncio.sleep(GATHER_S)
        while self._waiting:
            batch, self._waiting = self._waiting, []
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._batch, batch)
            for (_, params, future), ids in zip(batch, found, strict=True):
                future.set_result(Generation(ids[: params.max_tokens], [], "length", 0))
            await asyncio.sleep(GATHER_S)

    def _batch(self, batch: Sequence[tuple[list[int], SamplingParams, Any]]) -> list[list[int]]:
        import torch

        width = max(len(ids) for ids, _, _ in batch)
        ids = torch.zeros(len(batch), width, dtype=torch.long)
        seen = torch.zeros_like(ids)
        for row, (own, _, _) in enumerate(batch):
            ids[row, width - len(own) :] = torch.tensor(own)
            seen[row, width - len(own) :] = 1
        most = max(params.max_tokens for _, params, _ in batch)
        torch.manual_seed(batch[0][1].seed or 0)
        with torch.no_grad():
            found = self._model.generate(
                ids, attention_mask=seen, max_new_tokens=most, min_new_tokens=most, do_sample=True, top_k=0, top_p=1.0
            )
        return [row.tolist() for row in found[:, width:]]


class HfBatching:
    """Transformers' own continuous batching.

    Args:
        model: A causal language model.
    """

    def __init__(self, model: Any) -> None:
        from transformers import GenerationConfig
        from transformers.generation.configuration_utils import ContinuousBatchingConfig

        sampling = GenerationConfig(do_sample=True, top_k=0, top_p=1.0, eos_token_id=-1, pad_token_id=0)
        room = ContinuousBatchingConfig(
            page_size=32, num_blocks=1024, max_batch_tokens=1024, return_logprobs=True, seed=0
        )
        self._manager = model.init_continuous_batching(generation_config=sampling, continuous_batching_config=room)
        self._manager.start()
        self._count = 0

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Continue ``ids``."""
        future: Future[Any] = Future()
        self._count += 1
        name = f"r{self._count}"

        def deliver(result: Any) -> None:
            if not future.done():
                future.set_result(result)

        self._manager.register_result_handler(name, deliver)
        self._manager.add_request(list(ids), request_id=name, max_new_tokens=params.max_tokens, eos_token_id=-1)
        result = await asyncio.wrap_future(future)
        if result.error:
            raise RuntimeError(result.error)
        return Generation(list(result.generated_tokens), list(result.logprobs or []), "length", 0)

    def close(self) -> None:
        """Stop the manager."""
        self._manager.stop(block=True, timeout=10)


def make(name: str, model: str) -> Any:
    """Return an engine with the model of a folder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from rstar2_env.rollout import make_engine

    loaded = AutoModelForCausalLM.from_pretrained(model).eval()
    if name in ("generate", "batching"):
        return (HfGenerate if name == "generate" else HfBatching)(loaded)
    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    options: dict[str, Any] = {"dtype": "float32", "max_model_len": 2048, "kv_cache_gib": 0.5}
    kind = "transformers" if name == "ours" else "vllm"
    return make_engine(kind, loaded, tokenizer, max_rows=256, **(options if name == "vllm" else {}))


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Print a table of the engines; return the figures by engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of the model; a random one of SmolLM2-135M's shape by default")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--turn", type=int, default=Episodes.turn, help="mean tokens of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each engine")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds after which a round has failed")
    parser.add_argument("--json", type=Path, help="file of the runs, which a later call continues")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    episodes = Episodes(given.episodes, turn=given.turn)
    if given.one:
        _serve(given.one, given.model, episodes, given.threads)
        return {}
    asked = {"model": given.model, "threads": given.threads, **asdict(episodes)}
    runs = Runs(given.json, asked)
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or str(make_model(Path(folder)))
        command = ["--model", model, "--episodes", str(given.episodes), "--turn", str(given.turn)]
        measure(given.engines, given.rounds, [*command, "--threads", str(given.threads)], runs, given.patience)
    figures = {name: runs.figures(name) for name in given.engines}
    _show(figures, episodes)
    return figures


class Runs:
    """The runs so far, in a file if one is given.

    Args:
        file: The file.
        asked: Settings of the runs; a file with other settings is begun again.
    """

    def __init__(self, file: Path | None, asked: Mapping[str, Any]) -> None:
        self._file = file
        self._content: dict[str, Any] = {"asked": dict(asked), "load": [], "runs": {}, "failed": {}}
        if file is not None and file.exists():
            found = json.loads(file.read_text("utf-8"))
            if found.get("asked") == self._content["asked"]:
                self._content = {**found, "failed": {}}

    def done(self, name: str) -> int:
        """Number of runs of an engine."""
        return len(self._content["runs"].get(name, []))

    def add(self, name: str, run: Mapping[str, float]) -> None:
        """Add a run."""
        self._content["runs"].setdefault(name, []).append(dict(run))
        self._content["load"].append(round(os.getloadavg()[0], 2))
        self._write()

    def fail(self, name: str, why: str) -> None:
        """Note why an engine is left out."""
        self._content["failed"][name] = why
        self._write()

    def figures(self, name: str) -> dict[str, Any]:
        """The medians of an engine, or why there are none."""
        if name in self._content["failed"] or not self.done(name):
            return {"failed": self._content["failed"].get(name, "no run")}
        runs = self._content["runs"][name]
        return {key: statistics.median(run[key] for run in runs) for key in runs[0]} | {"runs": runs}

    def _write(self) -> None:
        if self._file is not None:
            self._file.write_text(json.dumps(self._content, indent=2) + "\n", "utf-8")


def measure(names: Sequence[str], rounds: int, command: Sequence[str], runs: Runs, patience: float) -> None:
    """Run what is missing, in turns."""
    sides: dict[str, EngineProcess] = {}
    try:
        for number in range(rounds):
            for name in names:
                if runs.done(name) > number or runs.figures(name).get("failed", "no run") != "no run":
                    continue
                try:
                    if name not in sides:
                        if name == "vllm" and importlib.util.find_spec("vllm") is None:
                            raise RuntimeError("vLLM is not installed")
                        sides[name] = EngineProcess(name, command, patience)
                    runs.add(name, sides[name].round(number + 1))
                    print(f"{name}, round {number + 1}: {runs.figures(name)['runs'][-1]}", file=sys.stderr, flush=True)
                except RuntimeError as error:
                    if name in sides:  # it would continue to compute while the others run
                        sides.pop(name).close()
                    runs.fail(name, str(error))
                    print(f"{name} is left out: {error}", file=sys.stderr, flush=True)
    finally:
        for side in sides.values():
            side.close()


class EngineProcess:
    """An engine in a process of its own, which has played one round to warm up.

    Args:
        name: One of ``ENGINES``.
        command: The arguments of the process.
        patience: Seconds after which a round has failed.

    Raises:
        RuntimeError: The process ended, or took too long.
    """

    def __init__(self, name: str, command: Sequence[str], patience: float) -> None:
        threads = command[command.index("--threads") + 1]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": threads}
        environment["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        self._name, self._patience = name, patience
        self._log = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115  # ``close`` closes it
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--one", name, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
            env=environment,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.round(0)
        except RuntimeError:
            self.close()
            raise

    def round(self, number: int) -> dict[str, float]:
        """Play a round; return its seconds, CPU seconds and tokens per second."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{number}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the output says why
        ends = time.monotonic() + self._patience
        while (left := ends - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=left)
            except queue.Empty:
                break
            if line.startswith("{"):
                found: dict[str, float] = json.loads(line)
                return found
            if not line:
                self._log.seek(0)
                said = self._log.read().strip().splitlines()
                raise RuntimeError(f"the process ended: {said[-1] if said else 'without a message'}")
        raise RuntimeError(f"a round takes longer than {self._patience:.0f} s")

    def _read(self) -> None:
        """Queue the lines of the process, and an empty text when it has ended."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()


def _serve(name: str, model: str, episodes: Episodes, threads: int) -> None:
    """Play the rounds that are asked for, in a process of its own."""
    import torch
    from transformers import AutoConfig

    torch.set_num_threads(threads)
    episodes = replace(episodes, words=min(episodes.words, AutoConfig.from_pretrained(model).vocab_size))
    engine = make(name, model)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(episodes.play(engine, int(line)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        figures = {"seconds": wall, "cpu_seconds": cpu, "tokens_s": episodes.written / wall}
        figures["tokens_cpu_s"] = episodes.written / cpu
        print(json.dumps(figures), flush=True)


def _show(figures: Mapping[str, Mapping[str, Any]], episodes: Episodes) -> None:
    print(f"{episodes.count} episodes of {episodes.turns} turns, {episodes.written} tokens written")
    ours = figures.get("ours", {}).get("tokens_s")
    for name, found in figures.items():
        if "failed" in found:
            print(f"{name:9} left out: {found['failed']}")
            continue
        row = f"{name:9} {found['tokens_s']:8.1f} tokens/s  {found['cpu_seconds']:8.2f} CPU s"
        print(
            row + ("" if ours is None or name == "ours" else f"   ours is {ours / found['tokens_s']:.2f} times as fast")
        )


if __name__ == "__main__":
    main()
