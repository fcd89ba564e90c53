"""ROVER's targets, and why it works: the values of the uniform policy lead to every solution."""

from itertools import product

import numpy as np
import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.losses.rover import Rover


def batch(**fields):
    given = {
        "logp": [[-1.0, -2.0, -9.0, -3.0], [-1.0]],
        "old": [[-1.5, -2.0, -9.0, -2.0], [-1.0]],
        "mask": [[1, 1, 0, 1], [1]],
        "turn": [[0, 0, -1, 1], [0]],
        "advantage": [[0.5] * 4, [-1.0]],
        "mean_logp": [[-4.0, -5.0, -99.0, -6.0], [-4.0]],
        "old_mean_logp": [[-4.0, -5.5, -77.0, -6.2], [-3.0]],
        **fields,
    }
    return tokens(**given)


def test_the_target_is_the_reward_and_what_the_next_token_of_the_policys_is_worth():
    """Over a tool's token to the next turn, and nothing after the last token."""
    targets = [0.5 + (-5.0 + 5.5), 0.5 + (-6.0 + 6.2), 0.0, 0.5]
    values = [0.5, 0.0, 0.0, -1.0]
    loss = Rover()(batch())
    expected = [(q - y) ** 2 for q, y in zip(values, targets, strict=True)]
    assert loss[0, [0, 1, 3]].tolist() == pytest.approx([expected[0], expected[1], expected[3]])
    assert loss[1, 0].item() == pytest.approx(1.0)


def test_rho_weighs_log_probabilities_against_the_reward():
    loss = Rover(rho=0.5)(batch())
    assert loss[0, 0].item() == pytest.approx((0.25 - (0.5 + 0.5 * 0.5)) ** 2)


def test_the_target_has_no_gradient_and_the_first_update_is_a_policy_gradient():
    made = batch(old=[[-1.0, -2.0, -9.0, -3.0], [-1.0]], old_mean_logp=[[-4.0, -5.0, 0.0, -6.0], [-4.0]])
    Rover()(made)[made.mask].sum().backward()
    assert made.logp.grad[0].tolist() == [-1.0, -1.0, 0.0, -1.0]
    assert made.logp.grad[1, 0] == 2.0


def test_without_the_means_it_says_what_is_missing():
    with pytest.raises(ConfigurationError, match="mean log-probability"):
        Rover()(tokens([[-1.0]]))


DEPTH, WIDTH, GOOD = 4, 3, 4
LEAVES = list(product(range(WIDTH), repeat=DEPTH))


def paths(depth):
    return product(range(WIDTH), repeat=depth)


def uniform_values(good):
    """What the uniform policy is worth at every node of the tree."""
    worth = {leaf: float(leaf in good) for leaf in LEAVES}
    for depth in reversed(range(DEPTH)):
        for node in paths(depth):
            worth[node] = float(np.mean([worth[*node, action] for action in range(WIDTH)]))
    return worth


def reached(worth, temperature):
    """The probability of every leaf under a softmax over the values of the uniform policy."""
    found = {(): 1.0}
    for depth in range(DEPTH):
        for node in paths(depth):
            values = np.array([worth[*node, action] for action in range(WIDTH)])
            chances = np.exp((values - values.max()) / temperature)
            for action, chance in enumerate(chances / chances.sum()):
                found[*node, action] = found[node] * chance
    return found


def trees(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield {LEAVES[at] for at in rng.choice(len(LEAVES), GOOD, replace=False)}


def test_the_best_action_under_the_uniform_policys_values_leads_to_a_solution():
    """4 of 81 leaves are right: following the best value reaches one in every tree."""
    for good in trees(100):
        worth, node = uniform_values(good), ()
        while len(node) < DEPTH:
            node = max(((*node, action) for action in range(WIDTH)), key=worth.__getitem__)
        assert node in good


@pytest.mark.parametrize(("temperature", "success"), [(1.0, 0.11), (0.1, 0.66), (0.03, 0.97)])
def test_a_softmax_over_the_values_keeps_every_solution(temperature, success):
    rates, least = [], []
    for good in trees(100):
        found = reached(uniform_values(good), temperature)
        rates.append(sum(found[leaf] for leaf in good))
        least.append(min(found[leaf] for leaf in good))
    assert np.mean(rates) == pytest.approx(success, abs=0.02)
    assert min(least) > 0


def test_a_policy_trained_with_it_comes_to_solve_the_tree_by_all_solutions():
    """A table of logits, four updates a rollout as the recipe has it."""
    rng = np.random.default_rng(0)
    good = next(iter(trees(1)))
    places = {node: at for at, node in enumerate(node for depth in range(DEPTH) for node in paths(depth))}
    table = torch.zeros(len(places), WIDTH, dtype=torch.float64, requires_grad=True)
    optimizer, term = torch.optim.Adam([table], 0.05), Rover()
    for _ in range(40):
        chances = table.detach().softmax(-1).numpy()
        episodes = []
        for _ in range(32):
            node = ()
            while len(node) < DEPTH:
                node = (*node, int(rng.choice(WIDTH, p=chances[places[node]])))
            episodes.append(node)
        states = torch.tensor([[places[one[:depth]] for depth in range(DEPTH)] for one in episodes])
        actions = torch.tensor(episodes)[..., None]
        earned = torch.tensor([float(one in good) for one in episodes], dtype=torch.float64)
        advantage = (earned - earned.mean())[:, None].expand(-1, DEPTH)
        old = table.detach().log_softmax(-1)[states]
        for _ in range(4):
            now = table.log_softmax(-1)[states]
            made = tokens(old.gather(-1, actions)[..., 0].tolist(), advantage=advantage.tolist())
            made.logp, made.old = now.gather(-1, actions)[..., 0], old.gather(-1, actions)[..., 0]
            made.mean_logp, made.old_mean_logp = now.mean(-1).detach(), old.mean(-1)
            optimizer.zero_grad()
            term(made).mean().backward()
            optimizer.step()
    found = {(): 1.0}
    chances = table.detach().softmax(-1).numpy()
    for depth in range(DEPTH):
        for node in paths(depth):
            for action in range(WIDTH):
                found[*node, action] = found[node] * chances[places[node], action]
    assert sum(found[leaf] for leaf in good) > 0.8
    assert min(found[leaf] for leaf in good) > 1e-3
