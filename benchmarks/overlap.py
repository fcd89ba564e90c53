"""Seconds a step with episodes that are played ahead and without: a vLLM server on one core, the trainer on another.

    python benchmarks/overlap.py [--runs 3] [--steps 14] [--staleness 1] [--oversample N] [--tokens 48]

Both arms are the same run but for ``rollout.max_staleness``: the same server (vLLM's CPU build), the same cores, one
thread each, the same model, seeds, problems and number of tokens. They take turns, ``--runs`` times with a seed each,
and ``ratio`` is the median of the ratios of neighbours. A step's seconds are the wall time from the end of one to the
end of the next, without the first two steps, and without the last ones of the run, which have nothing to play ahead.

The load is right (``balanced``) where playing and training each take 40 to 60 % of a step that does both by turns.
Training weighs more, so a run before the others finds how many episodes are played for each that trains;
``--oversample`` sets it. The CPU seconds of both sides say what a quiet machine could reach at best: the larger of them
over their sum (``bound``). ``curve`` compares what the arms learn: of each window of steps the range of the mean reward
over the seeds of the arm that does not play ahead, and the median of the other, with the share of windows in range.

What it does not show: accelerators, where the hand-over of weights takes longer than here.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym

from rstar2_env.env.spaces import UnicodeText

WARM = 2
"""Steps that are not counted: the first compile and fill caches."""
LOW, HIGH = 0.4, 0.6
"""Shares of a step that playing and training may take."""
WINDOW = 3
"""Steps of a curve that are taken together."""


class Letters(gym.Env[str, str]):
    """Two turns; the reward is the share of lower-case letters in both, so a random model learns it step by step."""

    def __init__(self, split: str = "train") -> None:
        self.observation_space = self.action_space = UnicodeText(1000)
        self._said = ""
        self._turns = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Ask for letters."""
        super().reset(seed=seed)
        self._said, self._turns = "", 0
        return f"Write small letters. {int(self.np_random.integers(100))}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Ask once more, then reward."""
        self._said += action
        self._turns += 1
        if self._turns == 1:
            return "More.", 0.0, False, False, {}
        share = sum(letter.islower() for letter in self._said) / max(len(self._said), 1)
        return "", share, True, False, {}


def options_of(words: argparse.Namespace, server: str, folder: Path, *, staleness: int, seed: int) -> dict[str, Any]:
    """The options of one arm."""
    return {
        "model": str(words.model),
        "output_dir": str(folder / "run"),
        "seed": seed,
        "steps": words.steps,
        "save_every": 0,
        "threads": 1,
        "progress": False,
        "engine": "vllm-server",
        "engine_options": {"base_urls": server, "weights_dir": str(folder / "weights"), "wait_s": 300.0},
        "max_staleness": staleness,
        "problems_per_step": words.problems,
        "group_size": words.group,
        "oversample": words.oversample,
        "max_turn_tokens": words.tokens,
        "max_episode_tokens": 3 * words.tokens,
        "dtype": "float32",
        "learning_rate": words.lr,
        "weight_decay": 0.0,
        "tokens_per_device": 4096,
    }


def play(options: Mapping[str, Any]) -> dict[str, Any]:
    """Train one arm in this process; return its figures by step."""
    from transformers import TrainerCallback

    from rstar2_env import trainers

    ends: list[tuple[float, float]] = []

    class Clock(TrainerCallback):
        """Notes the time and the CPU time at the end of each step."""

        def on_step_end(self, *_: Any, **__: Any) -> None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            ends.append((time.perf_counter(), used.ru_utime + used.ru_stime))

    trainer = trainers.make("grpo", env=Letters, callbacks=[Clock()], **options)
    try:
        history = trainer.train().history
    finally:
        trainer.close()
    names = ("rollout/reward", "policy/lag", "seconds/rollout", "seconds/train", "seconds/hand_over", "seconds/wait")
    lines = [{name: line[name] for name in names if name in line} for line in history if "loss" in line]
    return {"wall": [wall for wall, _ in ends], "cpu": [cpu for _, cpu in ends], "lines": lines}


def figures_of(found: Mapping[str, Any], *, ahead: int, server_cpu: float = 0.0) -> dict[str, Any]:
    """Means over the steps that count.

    Args:
        found: What ``play`` returned.
        ahead: Hand-overs that it played ahead; that many steps at the end have nothing to play beside them.
        server_cpu: CPU seconds of the server in the whole run.
    """
    last = len(found["wall"]) - 1 - ahead
    counted = last - (WARM - 1)
    lines = found["lines"][WARM : last + 1]
    figures = {"step_s": (found["wall"][last] - found["wall"][WARM - 1]) / counted}
    figures["trainer_cpu_s"] = (found["cpu"][last] - found["cpu"][WARM - 1]) / counted
    figures["server_cpu_s"] = server_cpu / len(found["wall"])
    for name in ("seconds/rollout", "seconds/train", "seconds/hand_over", "seconds/wait", "policy/lag"):
        values = [line[name] for line in lines if name in line]
        if values:
            figures[name] = statistics.mean(values)
    return {**figures, "rewards": [line.get("rollout/reward") for line in found["lines"]]}


def summary(alone: Sequence[Mapping[str, Any]], ahead: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the runs of both arms come to, of pairs that ran one after the other."""
    shares = {
        name: statistics.median(one[f"seconds/{name}"] / one["step_s"] for one in alone)
        for name in ("rollout", "train")
    }
    cpu = [statistics.median(one[name] for one in alone) for name in ("trainer_cpu_s", "server_cpu_s")]
    return {
        "ratio": statistics.median(b["step_s"] / a["step_s"] for a, b in zip(alone, ahead, strict=True)),
        "step_s": [statistics.median(one["step_s"] for one in arm) for arm in (alone, ahead)],
        "shares": shares,
        "balanced": all(LOW <= share <= HIGH for share in shares.values()),
        "bound": max(cpu) / sum(cpu),
        "curve": curve([one["rewards"] for one in alone], [one["rewards"] for one in ahead]),
    }


def curve(alone: Sequence[Sequence[float]], ahead: Sequence[Sequence[float]]) -> dict[str, Any]:
    """How what one arm learns lies in the range of the other's seeds; of each, the mean rewards by step."""
    starts = range(0, len(alone[0]) - WINDOW + 1, WINDOW)
    ranges, medians = [], []
    for start in starts:
        before, after = (
            [statistics.mean(rewards[start : start + WINDOW]) for rewards in arm] for arm in (alone, ahead)
        )
        ranges.append([min(before), max(before)])
        medians.append(statistics.median(after))
    inside = [low <= middle <= high for (low, high), middle in zip(ranges, medians, strict=True)]
    return {"range": ranges, "ahead": medians, "inside": sum(inside) / len(inside)}


def played_for_each(alone: Mapping[str, Any]) -> int:
    """How many episodes to play for each that trains, so that playing takes as long as training."""
    return max(1, round(alone["seconds/train"] / alone["seconds/rollout"]))


@contextmanager
def serving(model: Path, core: int, log: Path) -> Iterator[tuple[str, int]]:
    """Serve a model on one core; yields the address and the process id, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    command += ["--kv-cache-memory-bytes", str(256 << 20), "--no-enable-chunked-prefill", "--max-num-seqs", "256"]
    command += ["--logprobs-mode", "processed_logprobs", "--disable-uvicorn-access-log"]
    own = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
    own |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *command],
            env={**os.environ, **own},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            while True:
                try:
                    urllib.request.urlopen(f"{address}/health", timeout=10).close()
                    break
                except OSError:
                    if process.poll() is not None:
                        raise SystemExit(f"The server ended: {log.read_text(errors='replace')[-2000:]}") from None
                    time.sleep(0.5)
            yield address, process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def cpu_of(session: int) -> float:
    """CPU seconds of the processes of a session."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[3]) == session:
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def arm(
    words: argparse.Namespace, server: str, session: int, *, staleness: int, seed: int = 0, steps: int | None = None
) -> dict[str, Any]:
    """Run one arm in a process of its own, on the trainer's core."""
    with tempfile.TemporaryDirectory(prefix="rstar2-overlap-", dir=words.folder) as folder:
        options = options_of(words, server, Path(folder), staleness=staleness, seed=seed)
        options["steps"] = steps or words.steps
        before = cpu_of(session)
        done = subprocess.run(
            ["taskset", "-c", str(words.cores[1]), sys.executable, __file__, "--arm", json.dumps(options)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"The run ended with {done.returncode}: {done.stderr[-3000:]}")
        found = json.loads(done.stdout.rpartition("RESULT ")[2])
        return figures_of(found, ahead=staleness, server_cpu=cpu_of(session) - before)


def read_words(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="pairs of runs")
    parser.add_argument("--steps", type=int, default=14, help="optimizer steps of a run")
    parser.add_argument("--staleness", type=int, default=1, help="of the arm that plays ahead")
    parser.add_argument("--problems", type=int, default=6, help="groups of a step")
    parser.add_argument("--group", type=int, default=8, help="episodes of a group that train")
    parser.add_argument("--oversample", type=int, help="episodes played for each that trains; found if not given")
    parser.add_argument("--tokens", type=int, default=48, help="tokens of a turn")
    parser.add_argument("--hidden", type=int, default=256, help="width of the model")
    parser.add_argument("--layers", type=int, default=4, help="layers of the model")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument(
        "--cores", type=int, nargs=2, default=sorted(os.sched_getaffinity(0))[:2], help="server, trainer"
    )
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    """Run both arms and print JSON."""
    words = read_words()
    # So that what was started ends with this program, whoever ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if words.arm:
        print("RESULT", json.dumps(play(json.loads(words.arm))))
        return
    if len(words.cores) < 2:
        raise SystemExit("This needs two cores: one for the server, one for the trainer.")
    if words.steps < WARM + 2 * words.staleness or words.staleness < 1:
        raise SystemExit(f"--steps must be at least {WARM} + 2 * --staleness, and that at least 1.")
    from rstar2_env.trainers.demonstration.tiny import make_tiny_model

    with tempfile.TemporaryDirectory(prefix="rstar2-overlap-") as folder:
        words.folder = folder
        words.model = make_tiny_model(Path(folder) / "model", hidden=words.hidden, layers=words.layers)
        alone, ahead = [], []
        with serving(words.model, words.cores[0], Path(folder) / "server.log") as (server, session):
            if words.oversample is None:
                words.oversample = 1
                first = arm(words, server, session, staleness=0, steps=WARM + 3)
                words.oversample = played_for_each(first)
            for number in range(words.runs):
                arms = [(alone, 0), (ahead, words.staleness)]
                for found, staleness in arms if number % 2 == 0 else reversed(arms):
                    found.append(arm(words, server, session, staleness=staleness, seed=number))
    kept = {name: value for name, value in vars(words).items() if name not in ("arm", "folder", "model")}
    load = [round(one, 1) for one in os.getloadavg()]
    print(
        json.dumps({**summary(alone, ahead), "load": load, "options": kept, "alone": alone, "ahead": ahead}, indent=1)
    )


if __name__ == "__main__":
    main()
