"""``gvpo``: its loss and its gradient are those of the least squares over a group, mean and all."""

import numpy as np
import pytest
import torch
from loss_tokens import tokens
from token_batches_of import batch_of

from rstar2_env.trainers.losses.gvpo import Gvpo
from rstar2_env.trainers.ranks import ONE

LENGTHS = [3, 1, 2]
BETA = 0.3


def both(advantages, seed=0, moved=0.5):
    """Loss and gradient over a group of three rows: of the term, and of the formula as it stands."""
    rng = np.random.default_rng(seed)
    logp = [rng.normal(-1, 0.5, length).tolist() for length in LENGTHS]
    old = [(np.array(row) + moved * rng.normal(size=len(row))).tolist() for row in logp]
    rows = [{"logp": p, "old": q, "advantage": a, "group": 2} for p, q, a in zip(logp, old, advantages, strict=True)]
    columns = Gvpo(BETA).prepare(batch_of(rows), ONE, rng)
    spread = [[[advantage] * length for advantage, length in zip(advantages, LENGTHS, strict=True)]]
    batch = tokens(logp, old=old, advantage=spread[0], mask=[[1] * length for length in LENGTHS])
    batch.columns = {
        name: torch.zeros(batch.mask.shape, dtype=torch.float64).masked_scatter(batch.mask, torch.tensor(values))
        for name, values in columns.items()
    }
    loss = Gvpo(BETA)(batch)[batch.mask].sum()
    loss.backward()
    own = batch.logp.detach().clone().requires_grad_()
    implied = BETA * (own - batch.old).masked_fill(~batch.mask, 0).sum(-1)
    formula = ((implied - implied.mean()) - torch.tensor(advantages)).square().sum() / 2 / (len(LENGTHS) - 1)
    formula.backward()
    return (loss, batch.logp.grad), (formula, own.grad)


@pytest.mark.parametrize("advantages", [[0.5, -0.25, -0.25], [1.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
def test_it_is_the_formula(advantages):
    for seed in range(5):
        found, wanted = both(advantages, seed)
        torch.testing.assert_close(found, wanted)


def test_in_the_first_update_it_is_a_policy_gradient():
    (_, slope), _ = both([0.5, -0.25, -0.25], moved=0.0)
    expected = [-BETA / 2 * advantage for advantage in (0.5, -0.25, -0.25)]
    assert slope[:, 0].tolist() == pytest.approx(expected)


def test_the_policy_that_implies_the_rewards_has_no_gradient():
    target = [0.6, -0.2, -0.4]
    rows = [{"logp": [advantage / BETA], "old": [0.0], "advantage": advantage} for advantage in target]
    columns = Gvpo(BETA).prepare(batch_of(rows), ONE, np.random.default_rng(0))
    assert columns["gvpo/slope"] == pytest.approx([0] * 3)
    assert columns["gvpo/distance"] == pytest.approx([0] * 3)


def test_a_row_alone_in_its_group_has_nothing_to_learn():
    rows = [{"logp": [-1.0, -2.0], "old": [-2.0, -2.0], "advantage": 1.0, "group": group} for group in (1, 2)]
    columns = Gvpo().prepare(batch_of(rows), ONE, np.random.default_rng(0))
    assert not columns["gvpo/slope"].any()
    assert not columns["gvpo/share"].any()


def test_rows_without_tokens_are_not_of_the_group():
    rows = [{"logp": [-1.0], "old": [-2.0], "advantage": 1.0}, {"logp": [-1.0, -1.0], "advantage": -1.0}]
    empty = {"logp": [], "advantage": 1.0}
    rng = np.random.default_rng(0)
    found, without = (Gvpo().prepare(batch_of(given), ONE, rng) for given in ([*rows, empty], rows))
    for name, values in without.items():
        assert found[name].tolist() == values.tolist()


def test_it_logs_how_far_the_policy_is():
    batch = tokens([[0.0, 0.0]], mask=[[1, 0]])
    values = batch.advantage.new_tensor([[-0.5, 9.0]])
    batch.columns = dict.fromkeys(("gvpo/distance", "gvpo/slope", "gvpo/share"), values)
    total, count = Gvpo().figures(batch)["gvpo/distance"]
    assert (total.item(), count.item()) == (0.5, 1)
