"""A folder is removed with any contents, and nothing outside is changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rstar2_env.sandbox.inside.tidy import remove_tree


def test_files_folders_links_and_closed_folders_go(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    (folder / "a" / "link").symlink_to(outside)
    (folder / "dangling").symlink_to("/no/such/file")
    os.mkfifo(folder / "a" / "fifo")
    (folder / "name with\nnewline").write_text("x")
    (folder / "closed").mkdir(mode=0)
    (folder / "a" / "closed").mkdir(mode=0)
    remove_tree(str(folder))
    assert not folder.exists()
    assert (outside / "kept").read_text() == "x"


@pytest.mark.slow
def test_a_depth_that_no_path_can_name_goes(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    remove_tree(str(folder))
    assert not folder.exists()


def test_a_folder_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "missing"))
    (tmp_path / "link").symlink_to(tmp_path)
    remove_tree(str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
