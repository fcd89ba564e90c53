"""The recipes that are a loss of their own: what each prescribes, and that it is one short file."""

import inspect
import math

import pytest
from loss_tokens import tokens
from places import ROOT

from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.parts import make_parts

PRESCRIBED = {
    "cispo": ("arXiv 2506.13585", ["cispo"], "group_norm", "token_mean", 16),
    "clip_cov": ("arXiv 2505.22617", ["clip_cov"], "group_norm", "token_mean", 8),
    "dppo": ("arXiv 2602.04879", ["dppo"], "group_norm", "const_len:length=64", 8),
    "dro": ("arXiv 2405.19107", ["dro"], "group_mean", "token_mean", 4),
    "fipo": ("arXiv 2603.19835", ["fipo"], "group_norm", "token_mean", 8),
    "glm5": ("arXiv 2602.15763", ["rollout_is"], "group_mean", "token_mean", 4),
    "gmpo": ("arXiv 2507.20673", ["gmpo"], "group_norm", "seq_mean", 8),
    "gvpo": ("arXiv 2504.19599", ["gvpo"], "group_mean", "const_len:length=1", 4),
    "kl_cov": ("arXiv 2505.22617", ["ppo_clip", "kl_cov"], "group_norm", "token_mean", 8),
    "luspo": ("arXiv 2602.05261", ["ppo_clip"], "group_norm", "const_len:length=1", 4),
    "m2po": ("arXiv 2510.01161", ["m2po"], "group_norm", "token_mean", 4),
    "sapo": ("arXiv 2511.20347", ["sapo"], "group_norm", "seq_mean", 4),
    "topr": ("arXiv 2503.14286", ["topr"], "group_mean", "const_len:length=64", 4),
    "vespo": ("arXiv 2602.10693", ["vespo"], "group_norm", "token_mean", 8),
}
"""Of each recipe its paper, loss, advantage, aggregation, and optimizer steps per rollout."""


@pytest.mark.parametrize("name", PRESCRIBED)
def test_it_prescribes_what_its_source_does(name):
    paper, loss, advantage, aggregation, minibatches = PRESCRIBED[name]
    recipe = TRAINERS.get(name)
    config = recipe.configure({"model": "m"}, {"max_episode_tokens": 64})
    assert (recipe.paper, [part.name for part in config.parts.loss]) == (paper, loss)
    parts = make_parts(config, shares_weights=True)
    assert (config.parts.advantage.name, config.parts.selector.name) == (advantage, "all")
    constant = getattr(parts.aggregation, "length", None)
    assert config.parts.aggregation.name + (f":length={constant}" if constant else "") == aggregation
    # With one optimizer step a rollout, most of these losses are the plain policy gradient.
    assert (config.optim.updates_per_rollout, config.optim.minibatches) == (1, minibatches)
    refills = name in ("clip_cov", "fipo", "kl_cov")
    assert (getattr(parts.selector, "reject_equal", False), config.rollout.refill) == (refills, 9 if refills else 0)


@pytest.mark.parametrize("name", PRESCRIBED)
def test_it_is_one_short_file_that_names_its_paper(name):
    text = (ROOT / f"trainers/recipes/{name}.py").read_text()
    assert len(text.splitlines()) < 30
    assert TRAINERS.get(name).paper in inspect.cleandoc(text.split('"""')[1])


def test_glm5_weighs_a_token_as_the_function_of_its_framework():
    """THUDM/slime@624b824: ``icepop_function`` with the bounds 0.5 and 2, run on these ratios apart from this package.

    There the weight multiplies the clipped surrogate, whose gradient before the first optimizer step is that of log pi.
    """
    ratios, weights = [0.4, 0.49, 0.51, 0.9, 1.0, 1.7, 1.99, 2.01, 5.0], [0, 0, 0.51, 0.9, 1, 1.7, 1.99, 0, 0]
    (term,) = make_parts(TRAINERS.get("glm5").configure({"model": "m"}), shares_weights=True).terms
    batch = tokens([[math.log(ratio) for ratio in ratios]], sampled=[[0.0] * 9], advantage=[[-2.0] * 9])
    term(batch).sum().backward()
    assert (batch.logp.grad[0] / 2).tolist() == pytest.approx(weights)


def test_the_surrogates_that_are_not_ppos():
    def surrogate(name):
        config = TRAINERS.get(name).configure({"model": "m"})
        return make_parts(config, shares_weights=True).terms[0]

    assert (surrogate("kl_cov").low, surrogate("kl_cov").high) == (None, None)
    luspo, gspo = surrogate("luspo"), surrogate("gspo")
    assert (luspo.level, luspo.low, luspo.high) == ("sequence", 2e-3, 2.5e-3)
    assert (gspo.level, gspo.low, gspo.high) == ("sequence", 3e-4, 4e-4)
    clip_cov, fipo = surrogate("clip_cov"), surrogate("fipo")
    assert (clip_cov.low, clip_cov.high, clip_cov.share) == (1, 1, 2e-4)
    assert (fipo.below, fipo.above, fipo.safety, fipo.half_life, fipo.dual) == (0, 0.2, 10, 32, 10)
