"""Divide the groups of a rollout into optimizer steps, and assign each group to a process.

Covered: the same division on any number of processes, and a balance of tokens among the processes within each optimizer
step. Not covered: moving rows between processes (``backends/trl/loss/pending_rows``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np


def divide_groups(
    groups: Collection[int], *, passes: int, minibatches: int, rng: np.random.Generator
) -> list[list[int]]:
    """Divide the groups of all processes into optimizer steps.

    Each pass shuffles all groups and deals them into ``minibatches`` steps whose numbers of groups differ by at most
    one. If there are fewer groups than ``minibatches``, a pass has one step for each group.

    Args:
        groups: Numbers of the groups, over all processes.
        passes: Passes over the groups.
        minibatches: Largest number of optimizer steps in one pass.
        rng: Random generator for the orders; in the same state on every process.

    Returns:
        The numbers of the groups of each optimizer step, ascending; a single empty step if there are no groups.
    """
    every = sorted(groups)
    parts = min(minibatches, len(every))
    batches = []
    for _ in range(passes):
        order = [every[at] for at in rng.permutation(len(every))] if minibatches > 1 else every
        batches += [sorted(order[part::parts]) for part in range(parts)]
    return batches or [[]]


def assign_groups(tokens: Mapping[int, int], batches: Sequence[Sequence[int]], processes: int) -> dict[int, int]:
    """Assign each group to the process that trains on it in all passes, with balanced tokens in each optimizer step.

    Groups are not divided, since aggregations refer to groups. The groups are assigned in decreasing order of tokens.
    Each goes to the process that so far has the fewest tokens in the optimizer steps that train on this group.

    Args:
        tokens: Tokens of each group, by its number.
        batches: Numbers of the groups of each optimizer step.
        processes: Number of processes.

    Returns:
        A mapping from the number of each group to the number of its process.
    """
    steps: dict[int, list[int]] = {group: [] for group in tokens}
    for step, batch in enumerate(batches):
        for group in batch:
            steps[group].append(step)
    loads = np.zeros((len(batches), processes))
    home = {}
    for group in sorted(tokens, key=lambda group: (-tokens[group], group)):
        in_steps, in_all = loads[steps[group]].sum(axis=0), loads.sum(axis=0)
        home[group] = min(range(processes), key=lambda process: (in_steps[process], in_all[process], process))
        loads[steps[group], home[group]] += tokens[group]
    return home
