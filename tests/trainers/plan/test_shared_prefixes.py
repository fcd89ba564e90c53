"""A plan counts the tokens that rows share as training does."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.backends.trl.loss.packing import divide, tree_tokens
from rstar2_env.trainers.plan.architecture import MODELS
from rstar2_env.trainers.plan.device import DEVICES
from rstar2_env.trainers.plan.plan import make_plan
from rstar2_env.trainers.plan.row_cost import OVERHEAD, RowCost
from rstar2_env.trainers.plan.shared_prefixes import cost_of, pass_work, rows_per_tree
from rstar2_env.trainers.plan.training_memory import total
from rstar2_env.trainers.plan.workload import Workload

MODEL = MODELS["qwen3-0.6b"]
WORK = Workload(groups=4, played=8, trained=8, budget=600, tokens_per_device=8192, in_flight=64, share_prefixes=True)


def rows_of(prompt: int, own: int) -> list[list[int]]:
    return [[group] * prompt + [100 + 8 * group + member] * own for group in range(4) for member in range(8)]


@pytest.mark.parametrize(("prompt", "own"), [(400, 150), (900, 60), (300, 300)])
def test_the_tokens_of_a_pass_are_those_that_training_packs(prompt: int, own: int) -> None:
    rows = rows_of(prompt, own)
    trees, others = divide(rows, WORK.tokens_per_device, cost_of(MODEL))
    assert not others
    packed = sum(tree_tokens([rows[at] for at in tree]) for tree in trees)
    tokens, pairs = pass_work(MODEL, WORK, np.full(32, float(own)), prompt)
    assert tokens == pytest.approx(OVERHEAD * packed, rel=0.03)
    assert pairs < 32 * (prompt + own) ** 2 / 2


def test_a_prompt_is_computed_once_for_each_tree_of_its_group() -> None:
    count = rows_per_tree(cost_of(MODEL), 100.0, 400, 8, 2048)
    assert 1 < count < 8
    assert rows_per_tree(cost_of(MODEL), 100.0, 400, 8, 16_384) == 8
    assert rows_per_tree(cost_of(MODEL), 100.0, 400, 8, 499) == 1


def test_separate_rows_are_counted_where_they_are_not_shared_or_a_tree_would_take_longer() -> None:
    own = np.full(32, 150.0)
    separate = (32 * 550.0, 32 * 550.0**2 / 2)
    assert pass_work(MODEL, replace(WORK, share_prefixes=False), own, 400) == separate
    assert pass_work(MODEL, WORK, own, 10) == (32 * 160.0, 32 * 160.0**2 / 2)


def test_the_trees_of_a_large_group_are_found_without_trying_trees_beyond_the_budget() -> None:
    tried = []

    class Counted(RowCost):
        def memory(self, spans):
            tried.append(len(spans))
            return super().memory(spans)

    cost = Counted(*(getattr(cost_of(MODEL), one.name) for one in fields(RowCost)))
    assert 1 < rows_per_tree(cost, 300, 900, 9000, 8192) == rows_per_tree(cost, 300, 900, 30, 8192)
    assert max(tried) <= 8192 // 300


def test_a_plan_is_shorter_and_needs_no_more_memory_with_shared_prefixes() -> None:
    sharing, separate = (
        make_plan(MODEL, DEVICES["mi300x"], 1, replace(WORK, share_prefixes=share)) for share in (True, False)
    )
    assert sharing.time is not None
    assert separate.time is not None
    assert sharing.time.train < 0.7 * separate.time.train
    assert total(sharing.placed.memory) <= total(separate.placed.memory)


def test_the_option_of_a_run_and_its_attention_decide() -> None:
    def shares(**options: object) -> bool:
        return Workload.of(TRAINERS.get("grpo").configure({"model": "m"}, options)).share_prefixes

    assert shares()
    assert not shares(share_prefixes=False)
    assert not shares(attn_implementation="eager")
