"""The folder of a model's configuration is the same at each start, so that vLLM finds what it has compiled."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip("torch", reason="engines need the extra 'train'")

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engines import vllm_setup
from rstar2_env.rollout.engines.vllm_setup import VllmCounters, stable_folder, start


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


class Arguments(SimpleNamespace):
    """Arguments of a vLLM that does not start."""

    def create_engine_config(self) -> None:
        raise ValueError("no device")


@pytest.mark.parametrize("eager", [False, True])
def test_a_start_that_compiles_the_model_says_so(monkeypatch: pytest.MonkeyPatch, eager: bool) -> None:
    names = ("vllm", "vllm.distributed", "vllm.platforms", "vllm.v1", "vllm.v1.engine", "vllm.v1.engine.llm_engine")
    modules = {name: ModuleType(name) for name in names}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(modules["vllm"], "EngineArgs", Arguments, raising=False)
    monkeypatch.setattr(modules["vllm.distributed"], "cleanup_dist_env_and_memory", lambda: None, raising=False)
    monkeypatch.setattr(
        modules["vllm.platforms"], "current_platform", SimpleNamespace(is_cpu=lambda: False), raising=False
    )
    monkeypatch.setattr(
        modules["vllm.v1.engine.llm_engine"], "LLMEngine", SimpleNamespace(from_vllm_config=None), raising=False
    )
    said: list[str] = []
    monkeypatch.setattr(vllm_setup, "say", said.append)
    monkeypatch.setattr(vllm_setup, "in_run", lambda: False)  # engines of other tests may have begun one
    sizes = {"max_rows": 1, "max_model_len": None, "kv_cache_gib": None, "utilization": None}
    with pytest.raises(ConfigurationError, match="no device"):
        start("m", None, VllmCounters(), options={"enforce_eager": eager}, **sizes)  # type: ignore[arg-type]
    assert [line.partition(".")[0] for line in said] == ([] if eager else ["vLLM is compiling the model"])
