"""Dealing groups: the same steps on any number of processes, none empty, and balanced tokens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.trainers.step.deal import assign_groups, divide_groups

GROUPS = st.dictionaries(st.integers(0, 200), st.integers(1, 4000), max_size=40)


def divided(groups, passes=1, minibatches=1, seed=0):
    return divide_groups(groups, passes=passes, minibatches=minibatches, rng=np.random.default_rng(seed))


@given(tokens=GROUPS, passes=st.integers(1, 3), minibatches=st.integers(1, 17))
def test_each_pass_has_every_group_once_and_no_step_is_empty(tokens, passes, minibatches):
    batches = divided(tokens, passes, minibatches)
    if not tokens:
        assert batches == [[]]
        return
    parts = min(minibatches, len(tokens))
    assert len(batches) == passes * parts
    sizes = [len(batch) for batch in batches]
    assert max(sizes) - min(sizes) <= 1
    for at in range(passes):
        assert sorted(group for batch in batches[at * parts : (at + 1) * parts] for group in batch) == sorted(tokens)


def test_the_passes_and_the_seeds_have_other_orders():
    first, second = divided(range(32), 2, 4)[:4], divided(range(32), 2, 4)[4:]
    assert first != second
    assert divided(range(32), 1, 4, seed=1) != divided(range(32), 1, 4, seed=2)


@given(tokens=GROUPS, passes=st.integers(1, 3), minibatches=st.integers(1, 8), processes=st.integers(1, 16))
def test_a_group_has_one_process_and_no_process_waits_while_another_has_two_groups(
    tokens, passes, minibatches, processes
):
    batches = divided(tokens, 1, minibatches)
    home = assign_groups(tokens, batches, processes)
    assert home.keys() == tokens.keys()
    for batch in batches:
        loads = np.zeros(processes)
        for group in batch:
            loads[home[group]] += tokens[group]
        # As any longest-first assignment: no process exceeds another by more than its smallest group.
        for process in range(processes):
            own = [tokens[group] for group in batch if home[group] == process]
            if own:
                assert loads[process] - min(own) <= loads.min()
    again = assign_groups(tokens, divided(tokens, passes, minibatches), processes)
    assert set(again.values()) <= set(range(processes))


def test_processes_take_turns_over_the_steps():
    # Two groups a step on eight processes: no process has groups of all steps.
    home = assign_groups(dict.fromkeys(range(8), 100), divided(range(8), 1, 4), 8)
    assert sorted(home.values()) == list(range(8))


@pytest.mark.parametrize("processes", [4, 8, 16])
def test_what_a_step_waits_for_is_near_what_it_must(processes):
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(50):
        played = {group: int(rng.lognormal(8, 0.5)) for group in range(8 * processes)}
        kept = {group: played[group] for group in played if rng.random() < 0.4}
        home = assign_groups(kept, [sorted(kept)], processes)
        loads = np.zeros(processes)
        stayed = np.zeros(processes)
        for group, tokens in kept.items():
            loads[home[group]] += tokens
            stayed[group // 8] += tokens
        ratios.append((loads.max() / loads.mean(), stayed.max() / stayed.mean()))
    dealt, before = np.mean(ratios, axis=0)
    assert dealt < 1.15 < 1.5 < before


def test_a_group_goes_first_the_more_tokens_it_has():
    home = assign_groups({0: 1, 1: 10, 2: 4, 3: 5}, [[0, 1, 2, 3]], 2)
    loads = [sum(tokens for group, tokens in {0: 1, 1: 10, 2: 4, 3: 5}.items() if home[group] == at) for at in (0, 1)]
    assert loads == [10, 10]


def test_the_steps_do_not_depend_on_the_order_in_which_groups_are_listed():
    assert divided([3, 1, 2, 0], 2, 2) == divided([0, 1, 2, 3], 2, 2)
    assert all(first < second for batch in divided(range(9), 1, 2) for first, second in pairwise(batch))
