"""Two sharded processes train along the curve of one: the same episodes, and the same loss and gradient at each step.

The draws of an episode depend on the run's seed, the step, the group and the member alone, so a run on several
processes does not lie near that of one with its seed: it is the same one, but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chain import chain, vllm_servers
from curves import CLOSE, apart, differing, outside
from vllm_serve import needs_vllm

from rstar2_env.core.run_folder import Run, read_run

pytest.importorskip("httpx", reason="servers need the extra 'remote'")

SEEDS = (0, 1, 2)


@pytest.mark.proof
@pytest.mark.train
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("shardings", "options"),
    [(("fsdp2", "zero3"), ()), (("fsdp2",), ("--set", "lora_rank=4"))],
    ids=["weights", "adapter"],
)
def test_ten_steps_of_two_sharded_processes_follow_one_process_and_lie_within_three_seeds(
    shardings: tuple[str, ...],
    options: tuple[str, ...],
    policy_folder: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """With two real servers and a faulty tool, all runs at the same servers one after the other."""
    needs_vllm()
    common = ["--wrap", "fault_injection:rate=0.2,kinds=timeout+lost", "--set", "keep_tokens=true", *options]
    with chain(tmp_path, policy_folder, vllm_servers(policy_folder, tmp_path), steps=10, servers=2) as whole:

        def played(name: str, *more: str, processes: int = 1) -> Run:
            whole.prepare(name, [*common, *more], processes=processes)
            whole.play({})
            return read_run(whole.run)

        seeds = [played(f"seed-{seed}", "--seed", str(seed)) for seed in SEEDS]
        # Curves that can be told apart.
        assert min(apart(seeds[one], seeds[other]) for one, other in [(0, 1), (0, 2), (1, 2)]) > 100 * CLOSE
        for sharding in shardings:
            run = played(sharding, "--set", f"sharding={sharding}", processes=2)
            assert not differing(run, seeds[0])
            assert apart(run, seeds[0]) < CLOSE
            assert not outside(run, seeds)
            record_property(f"{sharding}, distance from one process at most", f"{apart(run, seeds[0]):.1e}")
        record_property("steps", 10)
        record_property("episodes the same", 80)
        record_property("distance of two seeds at least", f"{min(apart(seeds[0], one) for one in seeds[1:]):.1g}")
