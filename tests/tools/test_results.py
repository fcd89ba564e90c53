"""Every file of results says with which command, commit and load it was made."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

import pytest
import results
from places import ROOT

if not (ROOT / ".git").exists():
    pytest.skip("git lists the files of results", allow_module_level=True)
KINDS = (".json", ".jsonl", ".xz")
OTHERS: Mapping[str, str] = {
    "benchmarks/word_sentences_second.json": "sentences that a benchmark fills in",
    "docker/telemetry/dashboard.json": "configuration of Grafana",
    "docs/data/demo_runs/sources.json": "says how the archives beside it were made",
    "rstar2_env/sandbox/docker/seccomp.json": "configuration of Docker",
    "rstar2_env/view/web/*.json": "configuration of npm and its tools",
    "rstar2_env/view/web/tests/segments.json": "inputs and expected outputs of a test",
    "rstar2_env/view/words/*.json": "texts of the viewer",
    "tests/durations.json": "order of the first run of the tests; no document quotes the seconds",
    "tests/last_full.json": "commits on which tests passed; if git lacks one, the tests run again",
    "tests/rstar2_env/doctor/machines/*.json": "machines as inputs of tests",
    "tests/support/demonstrations.jsonl": "demonstrations as inputs of tests",
    "tests/support/tokenizers/package*.json": "configuration of npm",
}
"""Files that are no results, with the reason."""


def git(*arguments: str) -> str:
    """The output of a command of git in this repository."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def listed() -> list[str]:
    """The data files that git has or would add."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return sorted(name for name in names if name.endswith(KINDS) and (ROOT / name).exists())


def is_other(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in OTHERS)


RESULTS = [name for name in listed() if not is_other(name)]


@pytest.mark.parametrize("name", RESULTS)
def test_a_file_of_results_has_command_commit_and_load(name: str) -> None:
    for told in results.sources(ROOT / name):
        assert [key for key in results.SOURCE if told[key] in ("", None)] == [], f"{told}: see tools/results.py"


def test_a_data_file_that_is_no_result_is_listed_with_its_reason() -> None:
    assert [pattern for pattern in OTHERS if not any(fnmatch(name, pattern) for name in listed())] == []
    assert {Path(name).parts[0] for name in RESULTS} == {"benchmarks", "docs", "rstar2_env", "tests", "tools"}
    assert all(OTHERS.values())


def test_the_commits_of_the_results_are_in_the_history() -> None:
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("this clone lacks the history")
    history = git("rev-list", "HEAD").splitlines()
    unnamed, unknown = set(), set()
    for name in RESULTS:
        for told in results.sources(ROOT / name):
            named = re.findall(r"\b[0-9a-f]{7,40}\b", f"{told['commit']} {told['command']}")
            unnamed |= set() if named else {name}
            unknown |= {(name, one) for one in named if not any(each.startswith(one) for each in history)}
    assert (unnamed, unknown) == (set(), set())


def test_a_program_that_writes_results_gets_the_present_commit_and_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(ROOT / "benchmarks" / "a.py"), "--only", "b c"])
    told = results.source()
    assert told["command"] == "python benchmarks/a.py --only 'b c'"
    assert git("rev-parse", "HEAD").startswith(told["commit"])
    assert re.fullmatch(r"\d+ cores, Python [\d.]+, load average [\d.]+ at the end", told["load"])
    assert results.source("make it", "counts") == {**told, "command": "make it", "load": "counts"}


MADE = {"command": "make", "commit": "abc", "load": "quiet"}


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.json", json.dumps({**MADE, "figures": {}}), [MADE]),
        ("a.json", json.dumps({**MADE, "suites": {"a": {}, "b": {"load": "1"}}}), [MADE, {**MADE, "load": "1"}]),
        ("a.json", "[1]", [dict.fromkeys(MADE, "")]),
        ("a.jsonl", f'{json.dumps(MADE)}\n{{"a": 1}}\n{{"commit": "def"}}\n', [MADE, {**MADE, "commit": "def"}]),
        ("a.jsonl", '{"command": "make"}\n{"a": 1}\n', [{"command": "make", "commit": "", "load": ""}]),
        ("a.tar.xz", "", [MADE]),
        ("b.tar.xz", "", [dict.fromkeys(MADE, "")]),
    ],
)
def test_the_source_of_results_is_read(tmp_path: Path, name: str, content: str, found: list[dict[str, str]]) -> None:
    (tmp_path / results.ARCHIVED).write_text(json.dumps({"archives": {"a": MADE}}))
    (tmp_path / name).write_text(content)
    assert list(results.sources(tmp_path / name)) == found
