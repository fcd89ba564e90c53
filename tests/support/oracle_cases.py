"""Cases in which the TRL backend must equal the reference backend: every pair of ways to compute and to define a loss.

A case says how rows are computed (processes, micro-batches, fillers, LoRA, ...) and what the loss is. As a program it
runs the cases of a file, as one process of several, ``oracle_cases.py CASES.json FOLDER``, and the first process writes
what was found (``trl_steps.take_steps``).
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from places import SUPPORT

FACTORS: dict[str, tuple[Any, ...]] = {
    "processes": ("1", "1-some", "2", "2-some", "2-idle"),
    "micro_batches": (1, 4),
    "minibatches": (1, 2),
    "policy": ("token", "turn", "sequence", "two_sided", "dual", "reinforce"),
    "kl": ("none", "k1", "k2", "k3", "k3+", "unbiased"),
    "entropy": (0.0, 0.05),
    "beside": ("none", "rover", "echo", "echo-all", "carft", "apo_dads"),
    "correction": ("none", "truncate-token", "truncate-turn", "mask-token", "mask-sequence", "geometric-turn"),
    "aggregation": ("token_mean", "seq_mean", "prompt_mean", "const_len"),
    "lora": (False, True),
    "checkpointing": (False, True),
    "temperature": (1.0, 0.7),
}
"""What a case varies. Of the processes: how many; with ``some``, a row has no advantage, another no token of the
policy's, and the second process has fewer rows than the first; with ``idle`` it has none.
"""
OTHER_TERMS: dict[str, tuple[Any, ...]] = {
    **FACTORS,
    "processes": ("1-some", "2-some"),
    "policy": (
        "cispo",
        "cispo-sampled",
        "clip_cov",
        "dppo",
        "dppo-kl",
        "dro",
        "fipo",
        "gmpo",
        "gspo-token",
        "gvpo",
        "kl_cov",
        "m2po",
        "rollout_is",
        "sapo",
        "topr",
        "vespo",
    ),
    "kl": ("none",),
    "entropy": (0.0,),
    "beside": ("none",),
    "correction": ("none", "truncate-token"),
    "aggregation": ("token_mean", "const_len"),
}
"""The same for one other term at a time; what they are is in ``oracle_terms``."""
Case = dict[str, Any]


def processes_of(case: Case) -> int:
    """How many processes a case takes."""
    return int(case["processes"][0])


def covering(factors: Mapping[str, Sequence[Any]], seed: int = 0) -> list[Case]:
    """Cases that hold every pair of values of two factors, found greedily."""
    rng = np.random.default_rng(seed)
    missing = {
        ((one, a), (other, b))
        for one, other in combinations(factors, 2)
        for a, b in product(factors[one], factors[other])
    }
    cases = []
    while missing:
        best: tuple[int, Case] = (-1, {})
        first = min(missing, key=repr)
        for _ in range(60):
            case = dict(first)
            for name in rng.permutation(list(factors)):
                if name in case:
                    continue
                gains = [
                    sum(_pair((name, value), item) in missing for item in case.items()) for value in factors[str(name)]
                ]
                options = [value for value, gain in zip(factors[str(name)], gains, strict=True) if gain == max(gains)]
                case[str(name)] = options[int(rng.integers(len(options)))]
            case = {name: case[name] for name in factors}
            covered = len(missing & pairs_of(case))
            best = max(best, (covered, case), key=lambda found: found[0])
        cases.append(best[1])
        missing -= pairs_of(best[1])
    return cases


def pairs_of(case: Case) -> set[Any]:
    """Every pair of values of a case."""
    return set(combinations(case.items(), 2))


def _pair(one: tuple[str, Any], other: tuple[str, Any]) -> Any:
    order = list(FACTORS)
    return (one, other) if order.index(one[0]) < order.index(other[0]) else (other, one)


def run_cases(cases: Sequence[Case], processes: int, folder: Path) -> list[dict[str, Any]]:
    """Start the processes once, run all cases on them, and return what was found in each."""
    (folder / "cases.json").write_text(json.dumps(cases))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    world = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    here = {
        "PYTHONPATH": str(SUPPORT),
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
    }
    started = []
    for rank in range(processes):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank)} | world if processes > 1 else {}
        with open(folder / f"{rank}.log", "w") as log:
            command = [sys.executable, str(SUPPORT / "oracle_cases.py"), str(folder / "cases.json"), str(folder)]
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **here, **own}))
    try:
        codes = [process.wait(300) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert not any(codes), "\n".join((folder / f"{rank}.log").read_text()[-3000:] for rank in range(processes))
    found: list[dict[str, Any]] = json.loads((folder / "found.json").read_text())
    return found


def main(cases: str, folder: str) -> None:
    """Run all cases as one process of several."""
    from trl_steps import take_steps  # torch and TRL take seconds to import

    gc.freeze()  # accelerate collects garbage for every trainer, and all of TRL would be looked through each time
    found = [take_steps(case, folder) for case in json.loads(Path(cases).read_text())]
    if os.environ.get("RANK", "0") == "0":
        (Path(folder) / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
