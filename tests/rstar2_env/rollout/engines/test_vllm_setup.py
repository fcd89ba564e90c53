"""The folder of a model's configuration is the same at each start, so that vLLM finds what it has compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="engines need the extra 'train'")

from rstar2_env.rollout.engines.vllm_setup import stable_folder


def written(folder: Path, layers: int) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(f'{{"layers": {layers}}}')
    return folder


def test_the_same_configuration_has_the_same_folder_at_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first, again = (stable_folder(written(tmp_path / name, 2)) for name in ("a", "b"))
    other = stable_folder(written(tmp_path / "c", 3))
    assert first == again != other
    assert (first / "config.json").read_text() == '{"layers": 2}'
    assert sorted(first.parent.iterdir()) == sorted([first, other]), "nothing else is left"


def test_without_a_cache_the_written_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = written(tmp_path / "a", 2)
    assert stable_folder(folder) == folder
