"""A prefix tree keeps no more memory for its backward pass than the micro-batch of separate rows that it replaces."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from tiny_models import VOCABULARY, tiny_qwen3

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.trainers.backends.trl.loss.forward import score, set_head
from rstar2_env.trainers.backends.trl.loss.micro_batches import lay_out
from rstar2_env.trainers.backends.trl.loss.packing import pack
from rstar2_env.trainers.backends.trl.loss.prefix_sharing import PrefixSharing


def rows_of(groups, prompt, own):
    """Groups of eight rows; ``own`` gives the least and the largest number of tokens after the prompt."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(groups):
        prompt_ids = rng.integers(1, VOCABULARY, prompt).tolist()
        for count in rng.integers(*own, 8, endpoint=True):
            ids = rng.integers(1, VOCABULARY, count).tolist()
            rows.append(Row(Episode(), prompt_ids, ids, [1] * int(count), [0.0] * int(count)))
    return rows


def kept_bytes(model, rows, batch, *, as_tree):
    """Bytes of the tensors that a forward pass keeps for its backward pass, without the weights."""
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        held = score(model, lay_out(batch, rows, as_tree=as_tree), nullcontext)
    assert held.logp.requires_grad
    return sum(storage.nbytes() for address, storage in kept.items() if address not in weights)


@pytest.mark.parametrize(
    ("groups", "prompt", "own", "budget"),
    [(2, 200, (75, 75), 2200), (3, 100, (20, 200), 1500), (1, 600, (100, 100), 5600)],
)
def test_a_tree_keeps_no_more_bytes_than_the_separate_rows_that_it_replaces(groups, prompt, own, budget):
    model = tiny_qwen3(max_position_embeddings=1024)
    set_head(model, 1.0)
    rows = rows_of(groups, prompt, own)
    trees, _ = PrefixSharing(model).divide(rows, budget)
    assert trees
    for tree in trees:
        parts = pack([rows[at].tokens for at in tree], budget)
        separate = [kept_bytes(model, rows, [tree[place] for place in part], as_tree=False) for part in parts]
        assert kept_bytes(model, rows, tree, as_tree=True) <= max(separate)
