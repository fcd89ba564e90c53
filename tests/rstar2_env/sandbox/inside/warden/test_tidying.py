"""A large folder is removed between the rounds of the warden's loop, without delaying other work."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rstar2_env.sandbox.inside.warden.loop import EventLoop
from rstar2_env.sandbox.inside.warden.tidying import Tidying


def tell(owner: object, error: Exception) -> None:
    raise error


def filled(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"d{number}").mkdir()
    return folder


def test_what_a_usual_call_leaves_is_gone_at_once(tmp_path: Path) -> None:
    folder = filled(tmp_path / "folder", 20)
    Tidying(EventLoop(tell)).remove(str(folder))
    assert not folder.exists()


def test_others_are_called_between_the_steps_of_a_long_removal(tmp_path: Path) -> None:
    loop = EventLoop(tell)
    tidying = Tidying(loop)
    folders = [filled(tmp_path / name, 2000) for name in ("one", "other")]
    left: list[int] = []

    def look() -> None:
        left.append(sum(len(os.listdir(folder)) for folder in folders if folder.exists()))
        if left[-1]:
            loop.call_at(time.monotonic(), look)
        else:
            loop.stop()

    for folder in folders:
        tidying.remove(str(folder))
    loop.call_at(time.monotonic(), look)
    loop.run()
    assert len(left) > 10, "the loop turned many times meanwhile"
    assert not any(folder.exists() for folder in folders)


def test_a_folder_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    Tidying(EventLoop(tell)).remove(str(tmp_path / "no such folder"))
