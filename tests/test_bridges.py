"""The runner of the bridges' tests: every file is run once, by pins of pyproject.toml that no other extra has."""

import re
import subprocess
import sys
import tomllib

import bridges
import last_full
import pytest
from passes import Tally
from places import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.fixture(autouse=True)
def recorded(monkeypatch):
    """What these tests would write into the record of bridges that passed."""
    found = []
    monkeypatch.setattr(last_full, "record", lambda names: found.extend(names))
    return found


def test_every_bridge_is_in_one_group():
    names = sorted(name for group in bridges.GROUPS for name in group.bridges)
    assert names == sorted(path.stem.removeprefix("test_") for path in bridges.TESTS.glob("test_*.py"))


@pytest.mark.parametrize("group", bridges.GROUPS, ids=lambda group: group.name)
def test_its_packages_are_pinned_and_in_no_other_extra(group):
    pins = [*(one for extra in group.extras for one in EXTRAS[extra]), *group.also, *group.beside]
    assert [one for one in pins if not re.search(r">=.*<", one)] == []
    assert [extra for extra in group.extras for name in ("test", "all") if extra in EXTRAS[name][0]] == []


def test_the_other_tests_do_not_look_into_their_folder():
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(bridges.TESTS)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=800)
    assert "no tests collected" in done.stdout, done.stdout + done.stderr


def test_an_environment_that_cannot_be_made_fails_with_what_pip_said(tmp_path, monkeypatch, capsys):
    group = bridges.Group("bad", bridges=("one", "two"), extras=(), also=("rstar2-env>=1,<1",))
    monkeypatch.setattr(bridges, "GROUPS", (group,))
    monkeypatch.setattr(bridges, "HOME", tmp_path)
    assert bridges.run(["one", "two"], []) == 1
    said = capsys.readouterr().out
    assert "rstar2-env" in said.partition("=== bridges")[0]
    assert said.rstrip().splitlines()[-1].startswith("0 passed, 0 failed, 0 skipped, 2 error")


def test_tests_that_were_skipped_are_counted_with_their_reason(monkeypatch, capsys):
    def made(wanted, words):
        tally = Tally()
        tally.counts["skipped"], tally.reasons["skipped: no"] = 3, 3
        yield bridges.Result("one", "one", tally, "")

    monkeypatch.setattr(bridges, "GROUPS", bridges.GROUPS[:1])
    monkeypatch.setattr(bridges, "test_all", made)
    assert bridges.run(["inspect"], []) == 0
    assert "3 skipped: no" in capsys.readouterr().out


@pytest.mark.parametrize(("bad", "code"), [(1, 0), (2, 1)])
def test_a_bridge_that_failed_is_tested_once_more_alone(bad, code, monkeypatch, capsys, recorded):
    asked = []

    def made(wanted, words):
        ((_, names),) = wanted
        asked.append(list(names))
        for name in names:
            tally = Tally()
            tally.counts["failed" if len(asked) <= bad else "passed"] = 1
            yield bridges.Result(name, name, tally, "what was said")

    group = bridges.Group("one", bridges=("first",), extras=())
    monkeypatch.setattr(bridges, "GROUPS", (group,))
    monkeypatch.setattr(bridges, "test_all", made)
    assert bridges.run(["first"], []) == code
    assert asked == [["first"], ["first"]]
    assert recorded == (["first"] if code == 0 else [])
    said = capsys.readouterr().out
    assert ("UNSTEADY: first" in said) == (code == 0)


def test_a_bridge_runs_if_one_of_its_inputs_changed(monkeypatch):
    names = [name for group in bridges.GROUPS for name in group.bridges]
    monkeypatch.setattr(last_full, "_read", lambda: dict.fromkeys(names, "0" * 40))
    changed = []
    monkeypatch.setattr(last_full, "_changed_since", lambda commit: changed)

    def selected():
        return sorted(name for _, chosen in bridges.select([])[0] for name in chosen)

    assert (selected(), len(bridges.select([])[1])) == ([], len(names))
    changed[:] = ["rstar2_env/adapters/skyrl.py"]
    assert selected() == ["skyrl"]
    changed[:] = ["rstar2_env/core/episode.py"]
    assert selected() == sorted(names)
    assert [name for _, chosen in bridges.select(["verl"])[0] for name in chosen] == ["verl"]
