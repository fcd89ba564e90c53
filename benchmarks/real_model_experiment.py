"""The policies of ``real_model.py``, and the runner that makes their results in slices of limited time.

Every policy of a seed begins with the same pretrained model and meets the same problems. ``base_no_tool`` and ``base``
are the untrained model without and with the tool. ``cold_start`` is fine-tuned on traces of worked programs; ``grpo``,
``grpo_roc`` and ``grpo_roc_clean`` continue from it with the same number of trained episodes. With ``--start``, all
seeds continue from a given cold start: the seeds then differ in reinforcement learning alone. ``no_tool_start`` is
fine-tuned on the answers of the same problems, and ``no_tool`` continues from it with ``grpo``: the same training
budget without a tool.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.files.json_lines import add_line, begin_lines, read_lines

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from results import commit  # noqa: E402

RESULTS = ROOT / "benchmarks" / "real_model_results.jsonl"
ENV = "rstar2/MathFence-v0"
WITH_TOOL: dict[str, Any] = {"dialect": "fenced:compact=true", "traceback": False, "max_turns": 4}
WITHOUT_TOOL: dict[str, Any] = {
    "dialect": "fenced",
    "dialect_options": {"system": "Put the answer in \\boxed{}."},
    "max_turns": 1,
}
WORLDS = ("word_arithmetic", "gsm_symbolic", "gsm8k")
MISTAKES = ("--error-rate", "0.1", "--call-mistake", "undefined_name", "--call-mistake", "misspelt")
"""Options of the traces: as in ``pipelines/smollm2_cpu.yaml``, some first calls fail and are corrected."""
COLD_START = ("model", "start", "traces", "epochs", "lr")
"""Settings on which a cold start depends."""
TRAINING = (*COLD_START, "steps", "groups", "group_size", "rl_lr", "max_tokens")
"""Settings on which reinforcement learning depends."""


@dataclass(frozen=True)
class Policy:
    """How a policy is made.

    Attributes:
        begins: The policy that it continues from; empty for the pretrained model.
        recipe: A trainer; ``sft`` is a cold start; empty for no training.
        tool: Whether it has the tool.
    """

    begins: str = ""
    recipe: str = ""
    tool: bool = True


POLICIES = {
    "base_no_tool": Policy(tool=False),
    "base": Policy(),
    "cold_start": Policy(recipe="sft"),
    "grpo": Policy("cold_start", "grpo"),
    "grpo_roc": Policy("cold_start", "grpo_roc"),
    "grpo_roc_clean": Policy("cold_start", "grpo_roc_clean"),
    "no_tool_start": Policy(recipe="sft", tool=False),
    "no_tool": Policy("no_tool_start", "grpo", tool=False),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``experiment``."""
    parser.add_argument("--model", required=True, help="folder of the pretrained model")
    parser.add_argument("--world", choices=WORLDS, default="word_arithmetic")
    parser.add_argument("--gsm8k", nargs=2, metavar=("TRAIN", "TEST"), help="GSM8K's files (JSONL), for that world")
    parser.add_argument("--seeds", type=int, default=None, help="number of seeds [3; gsm_symbolic and gsm8k: 1]")
    parser.add_argument("--only", default="+".join(POLICIES), help="policies, joined by +")
    parser.add_argument("--minutes", type=float, default=120, help="stop after this time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=Path("runs/real_model"), help="folder of the runs")
    parser.add_argument("--start", metavar="FOLDER", help="model that is the cold start of every seed")
    parser.add_argument("--traces", type=int, default=3000)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--lr", type=float, default=5e-4, help="learning rate of the cold start")
    parser.add_argument("--steps", type=int, default=60, help="steps of reinforcement learning")
    parser.add_argument("--groups", type=int, default=8, help="problems in a step, of 8 trained episodes each")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--rl-lr", type=float, default=2e-5)
    parser.add_argument("--problems", type=int, default=500, help="test problems (gsm8k: its whole test)")
    parser.add_argument("--samples", type=int, default=8, help="episodes of each test problem")
    parser.add_argument("--max-tokens", type=int, default=200, help="tokens of an episode")
    parser.add_argument("--one", nargs=2, metavar=("POLICY", "SEED"), help=argparse.SUPPRESS)


def read_results(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of results; a last line that an interruption cut is left out."""
    return [record for *_, record in read_lines(file, "a result")] if file.exists() else []


def needed(wanted: Iterable[str]) -> list[str]:
    """Return policies with those that they continue from, in the order in which they are made."""
    found: set[str] = set()
    for name in wanted:
        while name:
            if name not in POLICIES:
                raise SystemExit(f"There is no policy {name!r}. Known: {', '.join(POLICIES)}.")
            found.add(name)
            name = POLICIES[name].begins
    return [name for name in POLICIES if name in found]


def run(asked: argparse.Namespace) -> int:
    """Make the missing results until the time is over; return 0 if none is missing, 3 if some are, or an error."""
    if asked.one:
        _one(asked, asked.one[0], int(asked.one[1]))
        return 0
    if asked.world == "gsm8k" and not asked.gsm8k:
        raise SystemExit("The world gsm8k needs --gsm8k TRAIN TEST, two files in GSM8K's own format.")
    seeds = asked.seeds or (3 if asked.world == "word_arithmetic" else 1)
    until = time.monotonic() + 60 * asked.minutes
    # A model that is not trained here is the same for every seed.
    policies = needed(asked.only.split("+"))
    wanted = [(name, seed) for seed in range(seeds) for name in policies if not (seed and _given(asked, name))]
    failed: dict[tuple[str, int], int] = {}
    for number, (name, seed) in enumerate(wanted, 1):
        if any(_is_of(line, asked, name, seed) for line in read_results(asked.results)):
            continue
        if (POLICIES[name].begins, seed) in failed:
            failed[name, seed] = failed[POLICIES[name].begins, seed]
            continue
        left = until - time.monotonic()
        if left <= 0:
            print(f"The time is over: {len(wanted) - number + 1} results are missing. Call the same command again.")
            return 3
        print(f"{number}/{len(wanted)}: {asked.world}, seed {seed}, {name} ({left / 60:.0f} min left)", flush=True)
        status = _in_time([sys.executable, *_command(asked), "--one", name, str(seed)], left)
        if status is None:
            print(f"The time is over; {name} continues in the next call of the same command.")
            return 3
        if status:
            print(f"{name} of seed {seed} failed; the policies that do not continue from it are made.")
            failed[name, seed] = status
    return next(iter(failed.values()), 0)


def _command(asked: argparse.Namespace) -> list[str]:
    """Return the command of a slice, without the time and the choice of policies."""
    words = [str(Path(__file__).with_name("real_model.py")), "experiment"]
    for name, value in sorted(vars(asked).items()):
        if name in ("part", "one", "minutes", "only", "seeds") or value is None:
            continue
        words += [f"--{name.replace('_', '-')}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    return words


def _shown(words: Iterable[str]) -> str:
    """Return a command for a result: of paths of this machine, the name."""
    return shlex.join(
        [
            "python",
            "benchmarks/real_model.py",
            *(Path(word).name if Path(word).is_absolute() else word for word in words),
        ]
    )


def _in_time(words: Sequence[str], seconds: float) -> int | None:
    """Run a process; after that time, ask it to stop as Ctrl-C does, and return ``None``."""
    process = subprocess.Popen(words)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass  # the terminal has sent it to the process too
    process.wait()
    return None


def _is_of(line: Mapping[str, Any], asked: argparse.Namespace, policy: str, seed: int) -> bool:
    return (line["world"], line["policy"], line["seed"], line["settings"]) == (
        asked.world,
        policy,
        seed,
        _settings(asked),
    )


def _settings(asked: argparse.Namespace) -> dict[str, Any]:
    """Return what a result depends on, other than world, policy and seed."""
    names = ("traces", "epochs", "lr", "steps", "groups", "group_size", "rl_lr", "problems", "samples", "max_tokens")
    given = {"model": Path(asked.model).name, **({"start": Path(asked.start).name} if asked.start else {})}
    return {**given, **{name: getattr(asked, name) for name in names}}


def _given(asked: argparse.Namespace, name: str) -> str | None:
    """Return the folder of a model that is not trained here: the pretrained one, and the cold start if given."""
    if not POLICIES[name].recipe:
        return str(asked.model)
    return asked.start if name == "cold_start" else None


def _key(asked: argparse.Namespace, names: Iterable[str]) -> str:
    """Return a short digest of settings, for the name of a folder: other settings never continue its content."""
    files = [str(Path(file).resolve()) for file in asked.gsm8k or ()]
    content = [str(Path(asked.model).resolve()), files, [(name, getattr(asked, name)) for name in names]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:10]


def _problems(asked: argparse.Namespace, split: str, seed: int) -> str:
    if asked.world == "gsm8k":
        return f"{asked.gsm8k[0 if split == 'train' else 1]}:like=gsm8k"
    return f"{asked.world}:split={split},seed={seed}"


def held_out_problems(asked: argparse.Namespace) -> str | list[dict[str, str]]:
    """Return the test problems, which are the same for every policy and seed: the first ``--problems`` of the split."""
    from rstar2_env.problems import load_problems

    spec = _problems(asked, "test", 0)
    if asked.world == "gsm8k":
        return spec
    first = itertools.islice(load_problems(spec), asked.problems)
    return [{"id": problem.id, "question": problem.question, "answer": str(problem.answer)} for problem in first]


def sentences_of(results: Sequence[Mapping[str, Any]]) -> dict[str, Sequence[str]]:
    """Return the sentences of each test problem of ``word_arithmetic`` by its id; none for other worlds."""
    from rstar2_env.problems import load_problems

    if {line["world"] for line in results} != {"word_arithmetic"}:
        return {}
    problems = load_problems("word_arithmetic:split=test,seed=0")
    count = max(line["settings"]["problems"] for line in results)
    return {problem.id: problem.meta["sentences"] for problem in itertools.islice(problems, count)}


def _one(asked: argparse.Namespace, name: str, seed: int) -> None:
    """Make one result: train if the policy is trained, evaluate, and add the line."""
    policy = POLICIES[name]
    model, folder = _weights(asked, name, seed), _folder(asked, name, seed)
    with _counted(folder / "seconds.json") as hours:
        if _given(asked, name):
            pass
        elif policy.recipe == "sft":
            _cold_start(asked, policy, folder / "train", seed)
        else:
            _reinforce(asked, policy, folder / "train", seed)
        key = _key(asked, (*TRAINING, "problems", "samples"))
        found = _evaluate(asked, policy, str(model), folder / f"eval-{key}", seed)
    line = {
        "world": asked.world,
        "policy": name,
        "seed": seed,
        "settings": _settings(asked),
        **found,
        "seconds": round(sum(hours)),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[2], 2),
        "commit": commit(),
        "command": _shown([*_command(asked)[1:], "--only", name]),
    }
    there = list(read_lines(asked.results, "a result")) if asked.results.exists() else []
    with begin_lines(asked.results, (text + "\n" for _, text, _ in there)) as file:
        add_line(file, line)
    # The weights stay; with the state of the optimizer a checkpoint takes three times as much.
    for checkpoint in (folder / "train").glob("checkpoint*"):
        shutil.rmtree(checkpoint)


@contextmanager
def _counted(file: Path) -> Iterator[list[float]]:
    """Keep the seconds of each slice in a file; the yielded list has them all when the block has ended."""
    slices: list[float] = json.loads(file.read_text("utf-8")) if file.exists() else []
    began = time.monotonic()
    try:
        yield slices
    finally:
        slices.append(time.monotonic() - began)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(slices), "utf-8")


def _folder(asked: argparse.Namespace, name: str, seed: int) -> Path:
    """Return the folder of a policy: of its weights, and of its evaluations."""
    recipe = POLICIES[name].recipe
    key = _key(asked, () if not recipe else COLD_START if recipe == "sft" else TRAINING)
    return asked.out / asked.world / f"seed{seed}" / f"{name}-{key}"


def _weights(asked: argparse.Namespace, name: str, seed: int) -> Path:
    """Return the folder of a policy's weights."""
    if given := _given(asked, name):
        return Path(given)
    return _folder(asked, name, seed) / "train" / ("" if POLICIES[name].recipe == "sft" else "final")


def _cold_start(asked: argparse.Namespace, policy: Policy, folder: Path, seed: int) -> None:
    from rstar2_env.trainers import read_traces, sft
    from rstar2_env.trainers.pipeline.resuming import is_finished, newest_unfinished

    if is_finished(folder):
        return
    traces = folder.parent / "traces.jsonl"
    words = [sys.executable, "-m", "rstar2_env.cli", "traces", "--problems", _problems(asked, "train", seed)]
    words += ["-n", str(asked.traces), "--seed", str(seed), "--env", ENV, "--out", str(traces), *MISTAKES]
    words += ["--one-call"] if asked.world == "gsm8k" else []
    words += ["--resume"] if traces.exists() else []
    words += [word for name, value in WITH_TOOL.items() for word in ("--set", f"env.{name}={value}")]
    subprocess.run(words, check=True)
    rows = read_traces(traces)
    if not policy.tool:
        rows = [without_tool(row) for row in rows]
    sft(
        rows,
        model=asked.model,
        output_dir=folder,
        epochs=asked.epochs,
        batch_size=8,
        rows_per_device=8,
        learning_rate=asked.lr,
        warmup_ratio=0.1,
        max_length=400,
        seed=seed,
        resume=newest_unfinished(folder) is not None,
        overwrite=newest_unfinished(folder) is None,
    )


def without_tool(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace with its question and its answer alone, and the system message of the policies without a tool."""
    question = next(message for message in trace["messages"] if message["role"] == "user")
    system = {"role": "system", "content": WITHOUT_TOOL["dialect_options"]["system"]}
    return {**trace, "messages": [system, question, trace["messages"][-1]]}


def _reinforce(asked: argparse.Namespace, policy: Policy, folder: Path, seed: int) -> None:
    from rstar2_env.trainers import make
    from rstar2_env.trainers.pipeline.resuming import is_finished, newest_unfinished

    if is_finished(folder):
        return
    env = WITH_TOOL if policy.tool else WITHOUT_TOOL
    make(
        policy.recipe,
        model=str(_weights(asked, policy.begins, seed)),
        output_dir=str(folder),
        rollout={"env": ENV, "env_options": {**env, "problems": _problems(asked, "train", seed)}},
        steps=asked.steps,
        problems_per_step=asked.groups,
        group_size=asked.group_size,
        learning_rate=asked.rl_lr,
        warmup_steps=min(5, asked.steps),
        tokens_per_device=2048,
        max_episode_tokens=asked.max_tokens,
        max_in_flight=32,
        eval={"every": 0},
        save_every=5,
        seed=seed,
        resume=newest_unfinished(folder) is not None,
        overwrite=newest_unfinished(folder) is None,
    ).train()
    if not is_finished(folder):
        raise SystemExit(130)


def _evaluate(asked: argparse.Namespace, policy: Policy, model: str, folder: Path, seed: int) -> dict[str, Any]:
    from rstar2_env.evaluation.run import evaluate

    result = evaluate(
        ENV,
        model=model,
        problems=held_out_problems(asked),
        n=asked.samples,
        k=sorted({1, asked.samples}),
        seed=seed,
        env_options=WITH_TOOL if policy.tool else WITHOUT_TOOL,
        model_options={"max_episode_tokens": asked.max_tokens, "max_in_flight": 32},
        out=folder,
        resume=folder.exists(),
    )
    if result.interrupted:
        raise SystemExit(130)
    return figures(result.episodes)


def figures(episodes: Sequence[Any]) -> dict[str, Any]:
    """Return the counts of a result: right and all episodes by problem, calls by status, tokens.

    Args:
        episodes: The episodes; those that ended ``unavailable`` do not count.
    """
    counted = [episode for episode in episodes if episode.available]
    right: Counter[str] = Counter(episode.problem_id for episode in counted if episode.correct)
    played: Counter[str] = Counter(episode.problem_id for episode in counted)
    calls: dict[str, Counter[str]] = {"all": Counter(), "correct": Counter()}
    for episode in counted:
        statuses = [str(status) for status in episode.statuses if status.counts]
        calls["all"].update(statuses)
        if episode.correct:
            calls["correct"].update(statuses)
    return {
        "problems": {name: [right[name], count] for name, count in sorted(played.items())},
        "used_code": sum(episode.tool_calls > 0 for episode in counted),
        "episodes": len(counted),
        "calls": {name: dict(sorted(counts.items())) for name, counts in calls.items()},
        "tokens": sum(episode.policy_tokens for episode in counted) / max(1, len(counted)),
    }
