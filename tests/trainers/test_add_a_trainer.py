"""The pages on parts of a trainer are followed: the parts are short, work as files and as a package, and train."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import torch
from places import DOCS

from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.options.slots import SLOTS

PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in ("add-a-trainer.md", "part-interfaces.md"))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
FILES = {
    first.removeprefix("# "): rest
    for _, text in BLOCKS
    for first, _, rest in [text.partition("\n")]
    if re.fullmatch(r"# \w+\.(py|toml)", first)
}
PROGRAM = "\n".join(text for kind, text in BLOCKS if kind == "python" and text.partition("\n")[0][2:] not in FILES)
PRINTED = "".join(text for kind, text in BLOCKS if kind == "text")
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
LONGEST, LONGEST_RECIPE = 80, 30
ADDED = {
    "rollout": {"second_look"},
    "reward": {"brief"},
    "selector": {"extremes"},
    "advantage": {"ranked"},
    "loss": {"soft_clip", "root_mean", "squashed"},
    "sampler": {"hard_first"},
    "hook": {"longer"},
}


def command(line, model, folder, site=None):
    """Run a command of the page in a folder; return what it printed."""
    words = [str(model) if word == "PATH" else word for word in shlex.split(line)]
    rstar2 = [sys.executable, "-c", "from rstar2_env.cli import main; main()"]
    program = {"rstar2": rstar2, "pip": [sys.executable, "-m", "pip", "--quiet"]}
    path = {"PYTHONPATH": str(site)} if site else {}
    done = subprocess.run(
        [*program[words[0]], *words[1:]],
        cwd=folder,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **path},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def installed(written):
    """The folder into which the page's package is installed, with its entry points."""
    (line,) = (line for line in COMMANDS if line.startswith("pip"))
    command(line, "", written)
    site = written / "site"
    assert (site / "extremes.py").exists()
    return site


@pytest.fixture
def away(tmp_path):
    """A folder in which none of the files is."""
    return tmp_path


def test_a_part_is_one_short_file_and_a_recipe_a_shorter_one():
    lengths = {name: len(text.splitlines()) for name, text in FILES.items()}
    assert max(lengths.values()) < LONGEST
    assert lengths["mine.py"] < LONGEST_RECIPE
    assert all("import torch" not in text and "trl" not in text for text in FILES.values())


def test_the_page_adds_a_part_of_every_slot():
    assert ADDED.keys() == SLOTS.keys()
    assert all(name in PAGE for names in ADDED.values() for name in names)


@pytest.mark.slow
def test_an_installed_package_is_listed_with_its_parts(installed, away):
    listed = json.loads(command("rstar2 list parts --json", "", away, installed))
    assert list(listed) == list(SLOTS)
    for slot, names in ADDED.items():
        found = {part["name"]: part for part in listed[slot]}
        assert names <= found.keys()
        assert all(found[name]["summary"] for name in names)
    ours = json.loads(command("rstar2 list parts --json", "", away))
    assert all(not names & {part["name"] for part in ours[slot]} for slot, names in ADDED.items())
    (mine,) = (
        one for one in json.loads(command("rstar2 list trainers --json", "", away, installed)) if one["name"] == "mine"
    )
    assert mine["summary"].startswith("Second looks")
    assert "second_look" in command("rstar2 list trainers mine", "", away, installed)


@pytest.mark.train
def test_an_installed_package_trains_by_the_name_of_its_recipe(installed, away, tiny_model):
    (line,) = (line for line in COMMANDS if line.startswith("rstar2 train mine"))
    command(line, tiny_model, away, installed)
    run = away / "runs" / "third"
    lines = [json.loads(text) for text in (run / "metrics.jsonl").read_text().splitlines()]
    assert {one["step"] for one in lines} >= {1, 2}
    assert any(one.get("tokens/trained") for one in lines)
    state = torch.load(run / "checkpoint-2" / "run_state_0.pt", weights_only=True)
    sampler = state["collector"]["sampler"]
    assert sampler["drawn"] == 8
    # It has learned from the outcomes of both steps: the weights of the problems drawn are no longer those of the rest.
    assert sampler["weights"]
    assert set(sampler["weights"].values()) != {0.25}
    assert read_run(run).config["parts"]["hook"]


@pytest.mark.train
def test_parts_are_used_from_files_on_the_command_line(written, tiny_model):
    ours = [line for line in COMMANDS if line.startswith("rstar2") and " mine" not in line and "--json" not in line]
    assert len(ours) == 3
    printed = [command(line, tiny_model, written) for line in ours]
    assert "group_norm" in printed[0]
    config = json.loads((written / "runs" / "first" / "config.json").read_text())
    assert "extremes.py:Extremes" in str(config["parts"]["selector"])
    assert "ranked.py" in str(config["parts"]["advantage"])


@pytest.mark.train
def test_the_programs_of_the_page_print_what_they_say(installed, written, tiny_model):
    program = PROGRAM.replace('"PATH"', repr(str(tiny_model)))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=written,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == PRINTED


def test_every_command_of_the_page_is_run():
    verbs = [line.split()[1] for line in COMMANDS]
    assert verbs == ["list", "list", "train", "install", "list", "list", "train"]
