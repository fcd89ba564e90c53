"""``tools/mutate.py``: what it changes, what it reports, and that the tests kill the mutants of the formulas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mutations import mutants_of
from places import ROOT, SUPPORT

TOOL = ROOT / "tools" / "mutate.py"
PLANTED, CHECKS = SUPPORT / "planted.py", SUPPORT / "planted_checks.py"
SURVIVOR = "Grade.passed: self.factor * points > 6 -> self.factor * points >= 6"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the tool."""
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"})


def changes(source: str) -> list[str]:
    """The changes to a module, without their place."""
    return [f"{one.old} -> {one.new}" for one in mutants_of(source, "m.py")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, b):\n    return a + b", ["a + b -> a - b", "a + b -> a", "a + b -> b"]),
        ("def f(a, b):\n    return a / b", ["a / b -> a * b", "a / b -> a"]),
        ("def f(a, b):\n    return a < b", ["a < b -> a <= b", "a < b -> a >= b"]),
        ("def f(a, b):\n    return a and b", ["a and b -> a or b", "a and b -> b", "a and b -> a"]),
        ("def f(a):\n    return -a", ["-a -> a"]),
        ("def f(a):\n    return a.sum(-1)", ["a.sum(-1) -> a.mean(-1)", "a.sum(-1) -> a.sum(0)"]),
        (
            "def f(a):\n    return a.clamp(max=b)",
            ["a.clamp(max=b) -> a", "a.clamp(max=b) -> a.clamp(min=b)"],
        ),
        (
            "def f(a, b):\n    return max(a, b)",
            ["max(a, b) -> min(a, b)", "max(a, b) -> a", "max(a, b) -> b"],
        ),
        ("def f(a):\n    return a[:n]", ["a[:n] -> a[:]"]),
        ("def f(a):\n    a += 1", ["a += 1 -> a -= 1", "a += 1 -> pass", "a += 1 -> a += 2"]),
        ("def f(a):\n    return a if b else c", ["a if b else c -> a", "a if b else c -> c"]),
        ("LIMIT: float = 0.5", ["LIMIT: float = 0.5 -> LIMIT: float = 1.0"]),
        # No formulas: texts, messages, annotations, checks of lengths, registries.
        ('def f(a: Literal[1]) -> int:\n    """1."""\n    raise ValueError(f"{a + 1}")', []),
        ("def f(a, b):\n    return zip(a, b, strict=True)", []),
        ('ALL.register("a", 1)\nALL = Registry("a", shape=Shape(is_called_with(2), "a"))', []),
    ],
)
def test_the_mutants_of_a_formula(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


def test_a_name_stays_when_other_lines_change() -> None:
    source = "def f(a):\n    return a > 0\n\n\ndef g(a):\n    return a > 0, a > 0\n"
    names = [one.id for one in mutants_of(source, "m.py")]
    assert len(set(names)) == len(names)
    assert names == [one.id for one in mutants_of("X = a\n\n\n" + source, "m.py")]
    assert names[0] == "m.py::f: a > 0 -> a >= 0"
    assert "m.py::g: a > 0 -> a >= 0 #2" in names


def test_it_kills_what_the_tests_check_reports_a_planted_survivor_and_resumes(tmp_path: Path) -> None:
    """The short form of the proof below: the gate of ``sapo``, and a module whose test forgets a boundary."""
    listed, found = tmp_path / "equivalent.toml", tmp_path / "found.json"
    sapo = ROOT / "trainers" / "losses" / "sapo.py"
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in (sapo, PLANTED)]
    options = ["--source", PLANTED, sapo, "--tests", CHECKS, ROOT / "tests" / "trainers" / "losses" / "test_sapo.py"]
    options += ["--only", "planted.py", "--only", "Sapo.__call__", "--folder", tmp_path / "results", "--seconds", "0.1"]
    options += ["--equivalent", listed, "--json", found]

    first = run(*options)
    assert first.returncode == 1, first.stdout + first.stderr
    result = json.loads(found.read_text())
    assert [name.partition("::")[2] for name in result["survivors"]] == [SURVIVOR]
    assert f"planted.py:20: {SURVIVOR.partition(': ')[2]}" in first.stdout
    assert result["timed out"] >= 1, "count += 2 does not end"
    assert result["killed"] + result["timed out"] == result["mutants"] - 1 >= 30
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in (sapo, PLANTED)] == before

    # With a reason the survivor is no fault; a mutant that was killed needs none.
    listed.write_text(f"[[mutants]]\nids = ['{result['survivors'][0]}']\nreason = 'planted'\n")
    second = run(*options)
    assert (second.returncode, f"{result['mutants']} mutants, 0 of them to run" in second.stdout) == (0, True)
    with listed.open("a") as file:
        file.write(
            "[[mutants]]\nids = ['tests/support/planted.py::clipped: min(value, BOUND) -> value']\nreason = 'wrong'\n"
        )
    third = run(*options, "--report")
    assert third.returncode == 1
    assert "does not exist or was killed; remove it" in third.stdout


def test_an_entry_without_a_reason_is_refused(tmp_path: Path) -> None:
    listed = tmp_path / "equivalent.toml"
    listed.write_text("[[mutants]]\nids = ['a']\n")
    done = run("--report", "--only", "losses/sapo.py", "--equivalent", listed, "--folder", tmp_path)
    assert done.returncode == 1
    assert "each entry needs `ids` and a `reason`" in done.stderr


def test_every_listed_mutant_exists(tmp_path: Path) -> None:
    """Without results, only names that no module has are reported."""
    done = run("--report", "--folder", tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_the_mutants_of_the_formulas_are_killed(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Of all mutants, at least 97 of 100 are killed, and each of the others is listed with a reason."""
    found = tmp_path / "found.json"
    done = run("--hours", "1.9", "--json", found)
    result = json.loads(found.read_text())
    for name in ("mutants", "killed", "timed out", "equivalent", "score"):
        record_property(name, result[name])
    assert result["waiting"] == 0, "The time was up; run it again, and it continues."
    assert result["survivors"] == []
    assert result["stale"] == []
    assert result["score"] >= 0.97
    assert done.returncode == 0
