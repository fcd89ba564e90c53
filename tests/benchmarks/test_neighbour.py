"""``benchmarks/neighbour.py``: honest calls end as alone in every mode, and an interrupted run measures the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rstar2_env.testing import hostile_programs

MODES = ("all-layers", "no-groups", "no-mount", "no-namespaces")
SPINNERS = """
import os
for _ in range(20):
    if os.fork() == 0:
        break
while True: pass
"""
ENDS = {"spinners": SPINNERS, "fails": "1 / 0", "leaves": "import os\nif os.fork() == 0:\n    while True: pass"}


GREEDY = {
    "sessions": """
import os, time
for _ in range(20):
    if os.fork() == 0:
        try: os.setsid()
        except PermissionError: pass
        while True: pass
time.sleep(0.1)
""",
    "spinners": """
import ctypes, os, platform, threading, time
def spin():
    while True: pass
for _ in range(4):
    if os.fork() == 0:
        threading.Thread(target=spin, daemon=True).start()
        ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)  # ends the first thread alone
time.sleep(0.1)
""",
    "orphans": """
import os, time
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0: time.sleep(60)
        os._exit(0)
""",
    "pipes": """
import os, time
for _ in range(20):
    if os.fork() == 0:
        kept = [os.pipe() for _ in range(100)]
        time.sleep(60)
time.sleep(0.1)
""",
    "locks": """
import fcntl, os
for path, how in ((os.__file__, os.O_RDONLY), ("/dev/null", os.O_RDWR)):
    for lock in (fcntl.flock, fcntl.lockf):
        try: lock(os.open(path, how), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError: pass
""",
}
"""Programs that take resources which all programs share, by the name of the resource."""


@pytest.fixture
def attacks(tmp_path: Path) -> Path:
    """A folder of three programs."""
    for name, code in ENDS.items():
        (tmp_path / f"{name}.py").write_text(code)
    return tmp_path


@pytest.fixture(scope="module")
def neighbour(benchmark_named: Callable[[str], ModuleType]) -> Any:
    return benchmark_named("neighbour")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_program_is_measured_in_each_way_and_no_honest_call_ends_otherwise(
    neighbour: Any, attacks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = attacks / "found.jsonl"
    chosen = [word for name in ENDS for word in ("--only", name)]
    given = [*chosen, "--attacks", str(attacks), "--calls", "4", "--json", str(out)]
    assert neighbour.main(given) == 0
    found = lines(out)
    assert [(one["way"], one["program"]) for one in found] == [
        (way, name) for way in ("beside", "rest") for name in sorted(ENDS)
    ]
    assert all(one["other_ends"] == 0 and one["calls"] == 4 for one in found)
    assert all(one["p50_ratio"] > 0 and one["p99_ratio"] > 0 for one in found)
    by_key = {(one["way"], one["program"]): one["attacks"] for one in found}
    assert set(by_key["beside", "spinners"]) == {"timeout"}
    assert set(by_key["beside", "fails"]) == {"exception"}
    assert by_key["rest", "leaves"] == {"empty": 1}
    # Once more: nothing is measured again, and the table is the same.
    table = capsys.readouterr().out
    before = out.read_bytes()
    assert neighbour.main(given) == 0
    assert out.read_bytes() == before
    assert capsys.readouterr().out == table
    assert table.count("spinners") == 2


@pytest.mark.parametrize("mode", MODES)
def test_no_honest_call_ends_otherwise_in_any_mode(neighbour: Any, mode: str) -> None:
    assert set(neighbour.MODES) == set(MODES)
    with neighbour.LocalSandbox(workers=2, waiting=2, preload=(), without=neighbour.MODES[mode]) as sandbox:
        found = [
            neighbour.measure(sandbox, mode, way, name, code, 3)
            for name, code in GREEDY.items()
            for way in neighbour.WAYS
        ]
    assert {(one.way, one.program): one.other_ends for one in found} == {
        (way, name): 0 for way in neighbour.WAYS for name in GREEDY
    }
    assert all(one.attacks for one in found)


def test_the_programs_within_the_wanted_bounds_are_counted(neighbour: Any, capsys: pytest.CaptureFixture[str]) -> None:
    one = {"mode": "m", "way": "rest", "program": "x", "alone_p50_ms": 1.0, "other_ends": 0}
    ratios = [(2.0, 4.0), (2.1, 1.0), (1.0, 4.1), (0.5, 0.5)]
    neighbour.show([{**one, "p50_ratio": p50, "p99_ratio": p99} for p50, p99 in ratios])
    assert "2 of 4 are within 2 times the median and 4 times the 99th percentile." in capsys.readouterr().out


def test_an_interrupted_run_measures_the_rest(neighbour: Any, attacks: Path) -> None:
    out = attacks / "found.jsonl"
    given = ["--attacks", str(attacks), "--calls", "2", "--way", "rest", "--json", str(out)]
    neighbour.main([*given, "--only", "fails"])
    first = out.read_text()
    out.write_text(first + '{"mode": "all-lay')  # killed while it wrote a line
    neighbour.main([*given, "--only", "fails", "--only", "leaves"])
    assert out.read_text().startswith(first)
    assert [one["program"] for one in lines(out)] == ["fails", "leaves"]


def test_an_honest_call_that_ends_otherwise_is_counted(neighbour: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The second half of the honest calls prints something else.
    monkeypatch.setattr(neighbour, "HONEST", "import os\nprint(os.path.exists('/proc'))")
    sandbox = neighbour.LocalSandbox(workers=2, waiting=2, preload=())
    with sandbox:

        def spoiled(sandbox: Any, code: str, attacks: Any) -> Any:
            monkeypatch.setattr(neighbour, "HONEST", "1 / 0")
            return real(sandbox, code, attacks)

        real = neighbour._beside
        monkeypatch.setattr(neighbour, "_beside", spoiled)
        found = neighbour.measure(sandbox, "all-layers", "beside", "x", "1", 3)
    assert found.other_ends == 3


def test_the_programs_are_those_of_the_folder_and_of_the_package(neighbour: Any, attacks: Path) -> None:
    assert set(neighbour.programs(attacks)) == {*ENDS, *(program.name for program in hostile_programs())}


def test_a_program_that_does_not_exist_is_named(neighbour: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        neighbour.main(["--only", "no such program"])
    assert "no such program" in capsys.readouterr().err


def test_the_tables_for_documents_have_the_ranges_of_each_way_and_the_slowest_programs(neighbour: ModuleType) -> None:
    def measured(program: str, way: str, p50: float, p99: float, other_ends: int = 0) -> dict[str, Any]:
        found = {"mode": "all-layers", "way": way, "program": program, "p50_ratio": p50, "p99_ratio": p99}
        return {**found, "other_ends": other_ends, "alone_p50_ms": 5.0}

    found = [measured("a", "beside", 1.0, 2.0), measured("b", "beside", 2.5, 3.0, 1), measured("c", "rest", 1.1, 4.5)]
    tables = neighbour.tables_of(found, worst=2)
    assert [row[2:] for row in tables["summary"][1:]] == [
        ["2", "1.8 ×, at most 2.5 ×", "2.5 ×, at most 3.0 ×", "1 of 2", "1"],
        ["1", "1.1 ×, at most 1.1 ×", "4.5 ×, at most 4.5 ×", "0 of 1", "0"],
    ]
    assert [row[0] for row in tables["worst"][1:]] == ["`b`", "`c`"]
