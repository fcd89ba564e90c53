"""Versions and counts that the documents name are those of pyproject.toml and of the registries."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pictures import check
from places import BENCHMARKS, DOCS, ROOT
from site_pictures import MOST_BYTES_OF_ALL, OUT, PICTURES

WORDS = {
    word: number
    for number, word in enumerate(
        [
            "no",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
        ]
    )
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PINNED = {
    match[1].lower(): match[2]
    for extra in PROJECT["optional-dependencies"].values()
    for one in extra
    if (match := re.match(r"([\w-]+)(?:\[[^]]*\])?>=(\d+\.\d+)", one))
}
"""The oldest major and minor version of each package of an extra."""
CALLED = {
    "TRL": "trl",
    "verifiers": "verifiers",
    "OpenEnv": "openenv",
    "openenv": "openenv",
    "skyrl-gym": "skyrl-gym",
    "TextArena": "textarena",
}


@pytest.mark.parametrize("page", ["docs/other-frameworks.md", "docs/bridge-transfers.md", "CHANGELOG.md"])
def test_versions_of_other_frameworks_are_those_that_are_pinned(page):
    text = (ROOT / page).read_text("utf-8")
    named = re.findall(rf"(?<![\w-])({'|'.join(CALLED)})`? (\d+\.\d+)", text)
    assert len({name for name, _ in named}) >= 3
    assert [(name, said) for name, said in named if PINNED[CALLED[name]] != said] == []


def number_of(page: str, pattern: str) -> int:
    """The number on a page; every place that has it must have the same."""
    text = " ".join((ROOT / page).read_text("utf-8").split())
    (found,) = {match.lower() for match in re.findall(pattern, text)}
    return WORDS[found] if found in WORDS else int(found.replace(",", ""))


def registered() -> dict[str, int]:
    """How many there are, in a process in which no other test registered any."""
    code = """
import json
import gymnasium as gym
from rstar2_env.diagnosis.examination import every_check
from rstar2_env.env.game_env import GameEnv
from rstar2_env.env.named import find_env
from rstar2_env.env.puzzle_env import PuzzleEnv
from rstar2_env.evaluation.validation.levels import CHECKS, LEVELS
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.slots import SLOTS
from rstar2_env.trainers.prove.scale import WHOLE
own = [find_env(name).creator for name, spec in gym.registry.items() if spec.namespace == "rstar2"]
print(json.dumps({
    "puzzles": sum(issubclass(env, PuzzleEnv) for env in own),
    "games": sum(issubclass(env, GameEnv) for env in own),
    "run checks": len(every_check()),
    "steps of a proof": WHOLE.grpo_steps,
    "recipes": len(TRAINERS.names()),
    "parts": sum(len(registry.names()) for kinds in SLOTS.values() for registry in kinds.values()),
    "checks": len(CHECKS),
    "levels": len(LEVELS),
}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


LANGUAGES = ROOT / "tests" / "rstar2_env" / "verification" / "test_languages.py"
"""A table of short answers by language."""


def runs(path: Path, counted: str) -> list[dict[str, Any]]:
    """The recorded runs of a benchmark whose budget counts this."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [line for line in lines if line.get("counts") == counted]


def bakeoffs() -> list[list[dict[str, Any]]]:
    """The recorded runs of each world of the bake-off."""
    return [runs(path, "tokens") for path in BENCHMARKS.glob("bakeoff_*.jsonl")]


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    return {
        **registered(),
        "dependencies": len(PROJECT["dependencies"]),
        "examples": len(list((ROOT / "examples").glob("*.py"))),
        "languages": len(re.findall(r'^    "\w\w": \[', LANGUAGES.read_text("utf-8"), re.MULTILINE)),
        "bake-off": len({line["arm"] for lines in bakeoffs() for line in lines}),
        "worlds": len(bakeoffs()),
        "seeds": len({line["seed"] for line in runs(BENCHMARKS / "learning_indifferent.jsonl", "trained")}),
    }


CHANGELOG = [
    (r"(\w+) procedural puzzle worlds", "puzzles"),
    (r"(\w+) games; mixtures", "games"),
    (r"(\d+) checks in RFC 008's", "checks"),
    (r"checks in RFC 008's (\w+) levels", "levels"),
    (r"short answers in (\w+) languages", "languages"),
    (r"(\d+) recipes of \d+ parts", "recipes"),
    (r"\d+ recipes of (\d+) parts", "parts"),
    (r"compares (\w+) recipes in \w+ worlds", "bake-off"),
    (r"compares \w+ recipes in (\w+) worlds", "worlds"),
    (r"by (\d+) checks over its folder", "run checks"),
    (r"(\w+) steps of GRPO-RoC", "steps of a proof"),
    (r"`examples/`: (\w+) short scripts", "examples"),
]
"""The counts of the changelog."""
NO_COUNTS = ("two evaluations", "two cores", "two CPU cores", "RFC 008", "ZeRO-2", "ZeRO-3")
"""Other numbers of the changelog: of a pair, of a machine, in a name."""


@pytest.mark.parametrize(
    ("page", "pattern", "what"),
    [
        ("README.md", r"tiny model over (\w+) seeds", "seeds"),
        ("docs/other-frameworks.md", r"(\d+) recipes", "recipes"),
        ("docs/other-frameworks.md", r"(\d+) checks in the", "checks"),
        ("docs/other-frameworks.md", r"checks in the (\w+) levels", "levels"),
        ("docs/other-frameworks.md", r"packages that the base needs \| (\d+) \|", "dependencies"),
        *(("CHANGELOG.md", pattern, what) for pattern, what in CHANGELOG),
    ],
)
def test_a_count_on_a_page_is_that_of_the_code(page, pattern, what, counts):
    assert number_of(page, pattern) == counts[what]


def test_every_count_of_the_changelog_is_tested():
    text = " ".join((ROOT / "CHANGELOG.md").read_text("utf-8").split())
    tested = [found.start(1) for pattern, _ in CHANGELOG for found in re.finditer(pattern, text)]
    others = r"[\d.]+<!-- [\w.]+ -->|\]\([^)]*\)|`[^`]*`|" + "|".join(NO_COUNTS)
    spans = [found.span() for found in re.finditer(others, text)]
    counts = re.finditer(rf"(?<![\w.-])(?:\d+|{'|'.join(list(WORDS)[2:])})(?!\.\d|[\w-])", text)
    assert [
        text[found.start() : found.start() + 40]
        for found in counts
        if found.start() not in tested and not any(begin <= found.start() < end for begin, end in spans)
    ] == []


def test_every_example_is_in_the_table_of_examples():
    table = (ROOT / "examples" / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| \[(\w+\.py)\]", table, re.MULTILINE)) == {
        path.name for path in (ROOT / "examples").glob("*.py")
    }


@pytest.mark.parametrize(("kind", "page"), [("view", "viewer.md"), ("site", "releasing.md")])
def test_every_picture_of_a_program_is_on_its_page(kind, page):
    pictures = {path.name for path in (DOCS / "pictures" / kind).glob("*.png")}
    text = (DOCS / page).read_text("utf-8")
    shown = text + (ROOT / "README.md").read_text("utf-8")
    assert set(re.findall(rf"\]\((?:docs/)?pictures/{kind}/([\w-]+\.png)", shown)) == pictures
    assert f"tests/support/{kind}_pictures.py" in text


def test_the_pictures_of_the_site_are_those_that_are_drawn_and_small():
    check(OUT, PICTURES)
    assert sum(path.stat().st_size for path in OUT.iterdir()) < MOST_BYTES_OF_ALL
