"""Claims about the name of a model: a typo is told at once, and what may be a model is let through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_hub import small_hub

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.model_name import check_model
from rstar2_env.trainers import make

pytest.importorskip("huggingface_hub")


@pytest.fixture
def models(tmp_path):
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "config.json").write_text("{}")
    (tmp_path / "run" / "best").mkdir(parents=True)
    (tmp_path / "run" / "best" / "config.json").write_text("{}")
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    (tmp_path / "trained" / "final").mkdir(parents=True)
    for name in ("config.json", "run.json"):
        (tmp_path / "trained" / name).write_text("{}")
    (tmp_path / "notes.txt").write_text("")
    return tmp_path


@pytest.mark.parametrize("name", ["start", "adapter"])
def test_a_folder_with_a_model_is_one(models, name):
    check_model(models / name)
    check_model(str(models / name))
    check_model(object())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("strat", r"There is no folder .*strat\. Did you mean .*start\?"),
        ("run", r"not contain a config.json\. There is one in .*run/best"),
        ("trained", r"is the folder of a run, not of a model: name the folder of its weights, .*trained/final \("),
        ("notes.txt", "is a file"),
        ("a/b/c/d", "There is no folder"),
    ],
)
def test_a_path_that_is_no_model_is_told_without_asking_anybody(models, monkeypatch, name, said):
    with small_hub(monkeypatch) as asked, pytest.raises(ConfigurationError, match=said) as error:
        check_model(models / name)
    assert asked == []
    assert error.value.option == "model"


def test_a_gguf_file_is_a_model_and_a_folder_with_one_is_told_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gg").mkdir()
    Path("gg/tiny.Q8.gguf").write_bytes(b"GGUF")
    check_model("gg/tiny.Q8.gguf")
    with pytest.raises(ConfigurationError, match=r"gg/tiny\.Q8\.gguf: name this file itself"):
        check_model("gg")


def test_a_name_that_could_be_the_hubs_is_asked_for_once_before_anything_is_loaded(models, monkeypatch):
    monkeypatch.chdir(models)
    with small_hub(monkeypatch, "/api/models/owner/name") as asked:
        check_model("owner/name")
        with pytest.raises(
            ConfigurationError, match=r"no folder has this name, and .* no model .* Did you mean start\?"
        ):
            make("grpo_roc", model="strat", output_dir=str(models / "out"))
    assert asked == ["/api/models/owner/name", "/api/models/strat"]
    assert not (models / "out").exists()


def test_an_adapter_whose_model_is_gone_is_refused_before_anything_is_loaded(tmp_path):
    config = tmp_path / "adapter" / "adapter_config.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"base_model_name_or_path": str(tmp_path / "gone")}))
    with pytest.raises(ConfigurationError, match=r"model .*/gone, to which the adapter in .*/adapter .*no folder"):
        check_model(config.parent)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "config.json").write_text("{}")
    check_model(config.parent)
