"""Claims about ``rstar2 list parts`` and ``rstar2 list trainers``: they are complete, and load nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest
from cli_runner import run

from rstar2_env import trainers
from rstar2_env.trainers.options.slots import SLOTS, parts_of

NAMES = ["rollout", "reward", "selector", "advantage", "loss", "sampler", "hook"]
HEAVY = ("torch", "transformers", "trl", "accelerate", "datasets", "peft", "vllm", "pandas", "scipy", "matplotlib")
HEAVY += ("sympy", "rich", "asyncio", "ssl", "pytest")


def printed(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_parts_are_one_object_by_slot():
    found = json.loads(printed("list", "parts", "--json"))
    assert list(found) == NAMES == list(SLOTS)
    for slot, parts in found.items():
        assert parts, slot
        for part in parts:
            assert {"name", "summary", "options", "paper"} <= set(part)
            assert part["summary"]
            assert ("kind" in part) == (slot == "loss")
    kinds = {(part["kind"], part["name"]) for part in found["loss"]}
    assert {("term", "ppo_clip"), ("aggregation", "token_mean"), ("correction", "truncate")} <= kinds
    (clip,) = [part for part in found["loss"] if part["name"] == "ppo_clip"]
    assert clip["options"]["high"] == 0.28
    assert clip["paper"] == "arXiv 1707.06347"
    assert not set(found["sampler"][0]["options"]) & {"ids", "seed"}, "the trainer gives these"


@pytest.mark.parametrize("kind", ["aggregation", "correction"])
def test_what_set_names_like_a_slot_is_listed_alone(kind):
    found = json.loads(printed("list", "parts", kind, "--json"))
    assert {part["kind"] for part in found["loss"]} == {kind}
    assert printed("list", "parts", kind).startswith(f"loss: {kind}\n")


def test_one_slot_is_listed_alone():
    assert list(json.loads(printed("list", "parts", "advantage", "--json"))) == ["advantage"]
    shown = printed("list", "parts", "loss")
    assert [line for line in shown.splitlines() if line.startswith("loss")] == [
        "loss: term",
        "loss: aggregation",
        "loss: correction",
    ]
    assert "selector" not in printed("list", "parts", "advantage")


def test_every_part_is_listed_with_its_options_within_80_columns():
    shown = printed("list", "parts")
    assert max(map(len, shown.splitlines())) <= 80
    flat = " ".join(shown.split())
    for slot in SLOTS:
        for part in parts_of(slot):
            assert part.name in shown
            assert all(one.name in flat for one in part.options)


def test_an_unknown_slot_suggests_the_nearest():
    done = run("list", "parts", "selectr")
    assert done.exit_code == 2
    assert "Did you mean 'selector'" in done.output


def test_the_trainers_are_a_list_of_objects():
    found = json.loads(printed("list", "trainers", "--json"))
    assert [recipe["name"] for recipe in found] == trainers.TRAINERS.names()
    assert all(recipe["summary"] and recipe["paper"] for recipe in found)


@pytest.mark.parametrize("name", trainers.TRAINERS.names())
def test_a_trainer_is_printed_as_a_file_that_says_the_same(name, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(printed("list", "trainers", name))
    recipe, options = trainers.find_recipe(str(path))
    expected = trainers.TRAINERS.get(name).configure({"model": "m"}).record()
    assert recipe.name == name
    assert recipe.configure(options, {"model": "m"}).record() == expected
    found = json.loads(printed("list", "trainers", name, "--json"))
    assert found["parts"] == expected["parts"]
    assert found["rollout"] == expected["rollout"]


def test_the_options_of_every_part_are_in_the_print_of_its_trainer():
    parts = tomllib.loads(printed("list", "trainers", "grpo_roc"))["parts"]
    assert set(parts) == {*NAMES, "aggregation", "correction"}
    assert set(parts["selector"]) == {"name", "mode", "minimum", "delta", "spare", "uniform"}


def test_a_name_that_is_no_trainer_suggests_the_nearest():
    done = run("list", "trainers", "grpo_rok")
    assert done.exit_code == 2
    assert "Did you mean 'grpo_roc'" in done.output


@pytest.mark.parametrize(
    "words", [["list", "parts"], ["list", "trainers"], ["list", "trainers", "grpo_roc"], ["list", "parts", "--json"]]
)
def test_listing_loads_nothing_heavy(words):
    code = (
        "import sys\nfrom rstar2_env.cli import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.rpartition("LOADED ")[2].split()
    assert "rstar2_env" in loaded
    assert not set(HEAVY) & set(loaded)
