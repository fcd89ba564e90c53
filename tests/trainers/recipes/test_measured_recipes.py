"""The recipes that measure more of the model than log-probabilities: what each prescribes, in one short file."""

from __future__ import annotations

import inspect

import pytest
from places import ROOT

from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.parts import make_parts

PRESCRIBED = {
    "apo": ("apo_stcr", ["ppo_clip", "apo_dads"], "token_mean", (0.2, 0.2), 16),
    "carft": ("group_norm", ["ppo_clip", "kl", "carft"], "seq_mean", (0.2, 0.2), 1),
    "echo": ("group_norm", ["ppo_clip", "echo"], "seq_mean", (0.2, 0.28), 1),
    "igpo": ("igpo", ["ppo_clip", "kl"], "token_mean", (0.2, 0.2), 1),
    "otb": ("optimal_token_baseline", ["reinforce"], "const_len", None, 1),
    "rover": ("group_mean", ["rover"], "token_mean", None, 4),
}
"""Of each recipe its advantage, loss, mean, bounds of the ratio, and optimizer steps a rollout."""


@pytest.mark.parametrize("name", PRESCRIBED)
def test_it_prescribes_what_its_source_does(name):
    advantage, loss, mean, bounds, minibatches = PRESCRIBED[name]
    config = TRAINERS.get(name).configure({"model": "m"})
    assert (config.parts.advantage.name, [part.name for part in config.parts.loss]) == (advantage, loss)
    assert config.parts.aggregation.name == mean
    surrogate = make_parts(config, shares_weights=True).terms[0]
    assert bounds is None or (surrogate.low, surrogate.high, surrogate.level) == (*bounds, "token")
    passes = 2 if name == "carft" else 1
    assert (config.optim.updates_per_rollout, config.optim.minibatches) == (passes, minibatches)
    assert config.rollout.temperature == {"rover": 0.6, "echo": 0.8}.get(name, 1.0)


def test_carft_and_echo_have_the_weights_of_their_sources():
    def terms(name):
        return make_parts(TRAINERS.get(name).configure({"model": "m"}), shares_weights=True).terms

    rollout = make_parts(TRAINERS.get("carft").configure({"model": "m"}), shares_weights=True).rollout
    assert (rollout.only_compared, rollout.count) == (True, 1)
    _, kl, contrast = terms("carft")
    assert (kl.coef, contrast.coef, contrast.temperature) == (0.05, 0.1, 0.2)
    assert terms("echo")[1].coef == 0.05


@pytest.mark.parametrize("name", PRESCRIBED)
def test_it_is_one_short_file_that_names_its_paper(name):
    text = (ROOT / f"trainers/recipes/{name}.py").read_text()
    assert len(text.splitlines()) < 32
    assert TRAINERS.get(name).paper in inspect.cleandoc(text.split('"""')[1])
