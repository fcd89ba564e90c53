"""The lock files beside the presets: they name every source that must be fetched, and nothing that nobody has seen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from preset_runs import PRESETS

from rstar2_env.core.files.config_file import read_mapping
from rstar2_env.problems import NAMED_SETS
from rstar2_env.problems.prepare import UNKNOWN, Lock
from rstar2_env.traces.conversations import CONVERSATION_SETS

LOCKS = {name: path.with_suffix(".lock") for name, path in PRESETS.items()}
LOCKS = {name: path for name, path in LOCKS.items() if path.exists()}


def stages(name: str, kind: str) -> list[dict[str, Any]]:
    return [stage for stage in read_mapping(PRESETS[name])["stages"].values() if stage["kind"] == kind]


def test_every_preset_with_data_of_the_hub_has_one() -> None:
    hub = {
        name
        for name in PRESETS
        if stages(name, "conversations")
        or any(one["problems"] in NAMED_SETS for stage in stages(name, "prepare") for one in stage["sources"].values())
    }
    assert hub == LOCKS.keys() == {"rstar2_14b_paper", "rstar2_14b_released", "qwen2.5_7b_8gpu"}


@pytest.mark.parametrize("name", LOCKS)
def test_it_names_every_source_as_the_stages_load_it(name: str) -> None:
    wanted = {}
    for stage in stages(name, "prepare"):
        assert stage["lock"] == LOCKS[name].name
        wanted |= {key: f"{one['problems']} (train)" for key, one in stage["sources"].items()}
        wanted |= {f"against {one}": f"{one} (test)" for one in stage.get("against", ())}
    for stage in stages(name, "conversations"):
        assert stage["lock"] == LOCKS[name].name
        for key in stage["sources"]:
            entry = CONVERSATION_SETS[key]
            wanted[key] = f"{entry.hub} ({entry.config or 'default'}, {entry.split})"
    assert {key: pin.source for key, pin in Lock(LOCKS[name]).pins.items()} == wanted


@pytest.mark.parametrize("name", LOCKS)
def test_what_is_unknown_says_so(name: str) -> None:
    for pin in json.loads(LOCKS[name].read_text("utf-8"))["sources"].values():
        assert pin["revision"] == UNKNOWN or len(pin["revision"]) == 40
        assert pin["checksum"] == UNKNOWN or pin["checksum"].startswith("sha256:")
        assert (pin["records"] is None) == (pin["checksum"] == UNKNOWN)
