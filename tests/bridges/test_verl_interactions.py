"""verl's interactions, against the last version that has them."""

from __future__ import annotations

import asyncio
import json

import pytest
from bridged import SCRIPTS, SUMS, direct
from verl.interactions.utils.interaction_registry import initialize_interactions_from_config

from rstar2_env.adapters import verl as bridge
from rstar2_env.core.errors import ConfigurationError, ServiceError


@pytest.fixture
def interaction(tmp_path):
    """An interaction that verl's own loader made."""
    written = {"name": "sums", "class_name": "rstar2_env.adapters.verl.EnvInteraction", "config": {"env": SUMS}}
    (tmp_path / "interactions.yaml").write_text(json.dumps({"interaction": [written]}))
    return initialize_interactions_from_config(str(tmp_path / "interactions.yaml"))["sums"]


def played(interaction, start, turns):
    """What verl's loop does: start, a response for every turn of the policy, finalize."""

    async def whole():
        await interaction.start_interaction("r1", **start)
        messages, told = [], []
        for turn in turns:
            messages.append({"role": "assistant", "content": turn})
            over, text, score, info = await interaction.generate_response("r1", messages, **start)
            messages.append({"role": "user", "content": text})
            told.append([text, score, over, info])
            if over:
                break
        score = await interaction.calculate_score("r1")
        await interaction.finalize_interaction("r1")
        return told, score

    return asyncio.run(whole())


@pytest.mark.parametrize("name", ["right", "wrong", "malformed", "no answer", "turns"])
def test_an_episode_of_ours_is_the_one_that_is_played_directly(interaction, name):
    told, score = played(interaction, {"seed": 4, "problem_id": "p3"}, SCRIPTS[name])
    _, *steps = direct(SUMS, 4, SCRIPTS[name], "p3")
    assert told == [[step[0], step[1], step[2] or step[3], step[4]] for step in steps]
    assert score == sum(step[1] for step in steps)
    assert interaction._running == {}


def test_the_rows_hold_the_opening_and_what_to_reset_with(interaction):
    row = bridge.rows(SUMS, 1, interaction="sums")[0]
    (text, info), *_ = direct(SUMS, row["extra_info"]["seed"], ())
    assert [one["content"] for one in row["prompt"]] == [info["system"], text]
    told, _ = played(interaction, row["extra_info"]["interaction_kwargs"], SCRIPTS["wrong"])
    assert told[-1][2]


def test_an_unavailable_episode_and_a_row_without_a_start_raise(interaction):
    with pytest.raises(ServiceError, match="not available"):
        played(interaction, {"seed": 4}, SCRIPTS["unavailable"])
    with pytest.raises(ConfigurationError, match="seed or problem_id"):
        played(interaction, {"name": "sums"}, ())
