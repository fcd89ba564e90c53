"""The recipes whose episodes have help or roles: what each prescribes, in one short file."""

from __future__ import annotations

import inspect

import pytest
from places import ROOT

from rstar2_env.trainers import TRAINERS

PRESCRIBED = {
    "critique_grpo": ("critique_refine", "all", "group_mean", ["shaped_offpolicy", "entropy"], "const_len"),
    "mae": ("mae", "all", "task_norm", ["ppo_clip"], "token_mean"),
    "ruscarl": ("rubric_scaffold", "all", "group_norm", ["ppo_clip", "kl"], "token_mean"),
    "cog_rethinker": ("decompose", "all", "group_norm", ["ppo_clip", "sft"], "token_mean"),
}
"""Of each recipe its rollout, selector, advantage, loss and mean."""


@pytest.mark.parametrize("name", PRESCRIBED)
def test_it_prescribes_what_its_source_does(name):
    parts = TRAINERS.get(name).configure({"model": "m"}).parts
    loss = [part.name for part in parts.loss]
    found = (parts.rollout.name, parts.selector.name, parts.advantage.name, loss, parts.aggregation.name)
    assert found == PRESCRIBED[name]


@pytest.mark.parametrize("name", PRESCRIBED)
def test_it_is_one_short_file_that_names_its_paper(name):
    text = (ROOT / f"trainers/recipes/{name}.py").read_text()
    assert len(text.splitlines()) < 36
    assert TRAINERS.get(name).paper in inspect.cleandoc(text.split('"""')[1])
