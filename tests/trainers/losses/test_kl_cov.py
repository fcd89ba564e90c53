"""``kl_cov``: the tokens that are held, and how."""

import numpy as np
import pytest
from loss_tokens import tokens
from token_batches_of import batch_of, column

from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.losses.kl_cov import KlCov

ROWS = [{"logp": [-0.1, -3.0], "advantage": 1.0}, {"logp": [-0.5, -3.2], "advantage": -1.0}]
"""Means -1.7 and 0: products 1.6, -1.3, -1.2 and 1.5."""


@pytest.mark.parametrize(
    ("share", "held"), [(0.0, [1, 0, 0, 0]), (0.3, [1, 0, 0, 0]), (0.5, [1, 0, 0, 1]), (0.8, [1, 0, 1, 1])]
)
def test_the_tokens_of_the_largest_products_are_held(share, held):
    assert column(KlCov(share=share), "kl_cov", ROWS) == held


def test_the_mean_of_the_advantages_does_not_matter():
    higher = [{**row, "advantage": row["advantage"] + 50} for row in ROWS]
    assert column(KlCov(share=0.5), "kl_cov", higher) == [1, 0, 0, 1]


def test_of_equal_products_the_first_are_held_on_any_number_of_processes():
    every = [{"logp": [-1.0, -1.0], "advantage": 1.0, "group": group} for group in (1, 2, 2, 5)]
    term, rng = KlCov(share=0.4), np.random.default_rng(0)
    for shares in ([every], [every[3:], every[:3]], [every[1:3], [], every[:1], every[3:]]):
        found = in_processes(
            len(shares), lambda ranks, shares=shares: term.prepare(batch_of(shares[ranks.rank]), ranks, rng)
        )
        held = {
            (one["group"], number): bool(value)
            for share, columns in zip(shares, found, strict=True)
            for number, (one, value) in enumerate(
                zip([one for one in share for _ in one["logp"]], columns["kl_cov"], strict=True)
            )
            if value
        }
        assert sorted(group for group, _ in held) == [1, 1, 2]


def test_what_is_held_is_pulled_back_to_what_it_was():
    batch = tokens([[-1.0, -1.0, -1.0]], old=[[-1.2, -0.5, -9.0]])
    batch.columns = {"kl_cov": batch.advantage.new_tensor([[1, 1, 0]])}
    loss = KlCov(coef=2.0)(batch)
    loss.sum().backward()
    assert loss[0].tolist() == pytest.approx([0.4, 1.0, 0])
    assert batch.logp.grad[0].tolist() == [2, -2, 0]
    total, count = KlCov().figures(batch)["kl_cov/distance"]
    assert (total.item(), count.item()) == (pytest.approx(0.7), 2)


def test_in_the_first_update_nothing_is_held_yet():
    batch = tokens([[-1.0]])
    batch.columns = {"kl_cov": batch.advantage.new_ones((1, 1))}
    KlCov()(batch).sum().backward()
    assert batch.logp.grad.item() == 0
