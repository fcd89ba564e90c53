"""The pages about environments print what they say they print, and the example is short."""

import importlib
import io
import re
import sys
from contextlib import redirect_stdout

import gymnasium as gym
import numpy as np
import pytest
from places import DOCS

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox import make_sandbox

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LONGEST = 60


@pytest.fixture(autouse=True)
def _sandbox():
    try:
        make_sandbox("local").close()
    except SandboxUnavailableError as error:
        pytest.skip(f"no local sandbox on this machine: {error}")


def blocks(page):
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def run(found, namespace):
    """Run each python block and compare what it prints with the text block after it."""
    for number, (kind, source) in enumerate(found):
        if kind != "python":
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(source, f"block {number}", "exec"), namespace)
        follows = found[number + 1] if number + 1 < len(found) else ("", "")
        assert printed.getvalue() == (follows[1] if follows[0] == "text" else "")


def test_the_examples_of_the_contract_print_what_they_say():
    found = blocks("environment-contract.md")
    assert len(found) >= 12
    run(found, {})


@pytest.fixture
def module_folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    forget_the_environment()  # another test of this process may have imported a module of the same name
    yield tmp_path
    forget_the_environment()


def forget_the_environment():
    sys.modules.pop("divisors", None)
    gym.registry.pop("mine/Divisors-v0", None)


def test_the_environment_of_the_guide_is_short_and_keeps_the_contract(module_folder):
    (_, source), *rest = blocks("add-an-environment.md")
    assert len(source.splitlines()) <= LONGEST
    (module_folder / "divisors.py").write_text(source, encoding="utf-8")
    importlib.invalidate_caches()
    run(rest, {})


def test_it_can_be_made_by_naming_its_module(module_folder):
    (_, source), *_ = blocks("add-an-environment.md")
    (module_folder / "divisors.py").write_text(source, encoding="utf-8")
    importlib.invalidate_caches()
    train, test = (gym.make("divisors:mine/Divisors-v0", split=split) for split in ("train", "test"))
    questions = [{env.reset(seed=seed)[0] for seed in range(50)} for env in (train, test)]
    assert not questions[0] & questions[1]


def test_the_puzzle_of_the_page_pays_the_reference_player_alone():
    names = {}
    run(blocks("write-a-puzzle.md"), names)
    puzzle = names["Reversal"]()
    draft = puzzle.draw(np.random.default_rng(0), "train")
    assert puzzle.solves(draft.meta, draft.answer)
    assert not puzzle.solves(draft.meta, puzzle.guess(draft.meta, None))
