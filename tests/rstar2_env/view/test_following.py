"""Who asks again is told the runs that have changed since, and everything where nobody knows since when."""

from __future__ import annotations

from contextlib import closing

import pytest
from run_sample import groups_of, write_run

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.view import answers, following
from rstar2_env.view.following import Follower
from rstar2_env.view.library import Library


@pytest.fixture
def follower(tmp_path):
    for name in "ab":
        write_run(tmp_path / name, steps=1)
    library = Library([tmp_path / "a", tmp_path / "b"], tmp_path / "cache")
    found = Follower(library)
    assert found.read_all(60)
    yield found
    library.close()


def test_the_runs_that_changed_since_are_told(tmp_path, follower):
    cursor = follower.changes("")[0]
    assert follower.changes(cursor) == (cursor, [], False)
    RunWriter(tmp_path / "b").train(9, groups_of(9))
    assert follower.read_all(60)
    later, changed, listed = follower.changes(cursor)
    assert (changed, listed) == (["b"], False)
    assert follower.changes(later) == (later, [], False)


@pytest.mark.parametrize("cursor", ["", "another-99", "-99"])
def test_a_cursor_of_another_viewer_means_everything(follower, cursor):
    assert follower.changes(cursor)[1:] == (["a", "b"], True)


def test_runs_that_are_not_read_within_the_time_limit_are_not_shown_in_part(tmp_path, monkeypatch):
    write_run(tmp_path / "run", steps=1)
    monkeypatch.setattr(answers, "_READ_S", 0.0)
    monkeypatch.setattr(Follower, "_update", lambda *given: False)  # as for a run that takes longer
    with pytest.raises(ConfigurationError, match="not read completely"), answers.read_runs([tmp_path], tmp_path / "c"):
        pass


def test_the_figures_of_a_run_are_computed_before_clients_learn_that_it_is_indexed(tmp_path, monkeypatch):
    write_run(tmp_path / "run", steps=1)
    with closing(Library([tmp_path / "run"], tmp_path / "cache")) as library:
        follower = Follower(library)
        run, told = follower.followed("run"), []
        monkeypatch.setattr(following.figures, "warm_cache", lambda index: told.append(run.complete))
        assert not follower._update("run", -1)
        assert follower._update("run", 60)
        assert (told, run.complete) == ([False], True)


def test_clients_learn_that_a_run_is_indexed_although_its_figures_cannot_be_computed(tmp_path, monkeypatch):
    def failing(index):
        raise ValueError("no figures")

    write_run(tmp_path / "run", steps=1)
    with closing(Library([tmp_path / "run"], tmp_path / "cache")) as library:
        follower = Follower(library)
        run = follower.followed("run")
        assert not follower._update("run", -1)
        cursor = follower.changes("")[0]
        monkeypatch.setattr(following.figures, "warm_cache", failing)
        follower._update("run", 60)
        assert run.complete
        assert follower.changes(cursor)[1] == ["run"]
        assert ["no figures" in note for note in run.notes] == [True]
