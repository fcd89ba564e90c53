"""``pass_work``: counts the tokens of a forward pass over the rows of a step, with shared prompts computed once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .architecture import Architecture
from .row_cost import OVERHEAD, RowCost
from .workload import Workload


def pass_work(model: Architecture, work: Workload, lengths: NDArray[np.float64], prompt: int) -> tuple[float, float]:
    """Return the numbers of tokens and of query-key pairs that one pass over the rows computes.

    With ``share_prefixes``, the prompt of a group is computed once for each tree of its rows, if the time of such trees
    is below that of separate rows. Tokens and pairs of trees are multiplied by ``row_cost.OVERHEAD``. Shared prefixes
    of branched episodes are not counted.

    Args:
        model: Sizes of the model.
        work: The work of a step.
        lengths: Number of tokens of each row after its prompt.
        prompt: Number of tokens of a prompt.
    """
    rows = lengths + prompt
    # A token attends to the tokens before it, which is half of a row on average.
    tokens, pairs = float(rows.sum()), float((rows**2).sum()) / 2
    if not work.share_prefixes or prompt < 2:
        return tokens, pairs
    cost = cost_of(model)
    trees = -(-work.trained // rows_per_tree(cost, float(lengths.mean()), prompt, work.trained, work.tokens_per_device))
    repeated = len(rows) * (1 - trees / work.trained)
    # The last token of a prompt predicts the first token of each row, and is computed for each row.
    packed = OVERHEAD * (tokens - repeated * (prompt - 1)), OVERHEAD * (pairs - repeated * (prompt - 1) ** 2 / 2)
    return packed if cost.time(*packed) < cost.time(tokens, pairs) else (tokens, pairs)


def cost_of(model: Architecture) -> RowCost:
    """Return the cost estimate of a model's passes, from the model's sizes."""
    return RowCost(model.hidden, model.query_width, model.intermediate * max(1, model.active_experts), model.layers)


def rows_per_tree(cost: RowCost, own: float, prompt: int, rows: int, budget: int) -> int:
    """Return the largest number of rows of a group that fit into one prefix tree.

    Args:
        cost: Cost estimate of the model's passes.
        own: Number of tokens of a row after its prompt.
        prompt: Number of tokens of the prompt.
        rows: Number of rows of the group.
        budget: Maximum number of tokens of a micro-batch.
    """
    stop = prompt + max(1, round(own))
    separate = budget // stop * stop

    def fits(count: int) -> bool:
        return cost.memory([(0, stop), *[(prompt - 1, stop)] * (count - 1)]) <= min(separate, count * stop)

    # The tokens alone exclude larger trees, whose memory takes long to compute.
    most = min(rows, 1 + max(0, separate - stop) // (stop - prompt + 1))
    return next((count for count in range(most, 1, -1) if fits(count)), 1)
