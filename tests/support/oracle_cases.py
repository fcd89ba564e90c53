"""Cases in which the TRL backend must equal the reference backend: every pair of ways to compute and to define a loss.

A case says how rows are computed (processes, micro-batches, fillers, LoRA, ...) and what the loss is. As a program it
runs the cases of a file, as one process of several, ``oracle_cases.py CASES.json FOLDER``, and the first process writes
what was found (``trl_steps.take_steps``).
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import prepared
from places import SUPPORT
from torch_launcher import end, ranks

FACTORS: dict[str, tuple[Any, ...]] = {
    "processes": ("1", "1-some", "2", "2-some", "2-idle"),
    "micro_batches": (1, 4),
    "minibatches": (1, 2),
    "policy": ("token", "turn", "sequence", "two_sided", "dual", "reinforce"),
    "kl": ("none", "k1", "k2", "k3", "k3+", "unbiased", "episode"),
    "entropy": (0.0, 0.05),
    "beside": ("none", "rover", "echo", "echo-all", "carft", "apo_dads"),
    "correction": ("none", "truncate-token", "truncate-turn", "mask-token", "mask-sequence", "geometric-turn"),
    "aggregation": ("token_mean", "seq_mean", "prompt_mean", "const_len"),
    "lora": (False, True),
    "checkpointing": (False, True),
    "prefixes": (False, True),
    "temperature": (1.0, 0.7),
}
"""What a case varies. Of the processes: how many; with ``some``, a row has no advantage, another no token of the
policy's, and the second process has fewer rows than the first; with ``idle`` it has none. With ``prefixes``, the rows
of a group share a prefix, which is computed once.
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


class Running:
    """Cases that processes work through one after the other; what was found in one is waited for when it is asked for.

    Cases of one process have one for all of them, cases of two have two, which start with the first of them.

    Args:
        cases: The cases by name.
        folder: An empty folder.
    """

    def __init__(self, cases: Mapping[Any, Case], folder: Path) -> None:
        self._cases, self._folder = cases, folder
        self._started: dict[int, list[Any]] = {}

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exception: object) -> None:
        end([process for own in self._started.values() for process in own])

    def __getitem__(self, name: Any) -> dict[str, Any]:
        processes = processes_of(self._cases[name])
        alike = [other for other, case in self._cases.items() if processes_of(case) == processes]
        folder = self._folder / str(processes)
        if processes not in self._started:
            folder.mkdir()
            self._started[processes] = _start([self._cases[other] for other in alike], processes, folder)
        path = folder / _found(alike.index(name))
        while not path.exists():
            codes = [process.poll() for process in self._started[processes]]
            if (any(codes) or codes[0] is not None) and not path.exists():  # the first writes what was found
                logs = "\n".join(log.read_text()[-3000:] for log in sorted(folder.glob("*.log")))
                raise AssertionError(f"a process ended too early, with {codes}:\n{logs}")
            time.sleep(0.05)
        found: dict[str, Any] = json.loads(path.read_text())
        return found


def _start(cases: Sequence[Case], processes: int, folder: Path) -> list[Any]:
    (folder / "cases.json").write_text(json.dumps(cases))
    variables = {
        **os.environ,
        "PYTHONPATH": str(SUPPORT),
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
    }
    words = [str(SUPPORT / "oracle_cases.py"), str(folder / "cases.json"), str(folder)]
    if processes > 1:
        return ranks(words, processes, variables, logs=folder)
    with open(folder / "0.log", "w") as log:
        return [prepared.popen(words, env=variables, stdout=log, stderr=log)]


def _found(number: int) -> str:
    return f"found-{number}.json"


def main(cases: str, folder: str) -> None:
    """Run all cases as one process of several."""
    from trl_steps import take_steps  # torch and TRL take seconds to import

    gc.freeze()  # accelerate collects garbage for every trainer, and all of TRL would be looked through each time
    for number, case in enumerate(json.loads(Path(cases).read_text())):
        found = take_steps(case, folder)
        if os.environ.get("RANK", "0") == "0":
            path = Path(folder) / _found(number)
            path.with_suffix(".part").write_text(json.dumps(found))
            path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
