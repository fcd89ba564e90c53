"""A push makes a repository that others load, goes on after a break, and says what a hub refuses before it writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cli_runner import run
from model_hub import Hub, Repository, model_hub, person

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.trainers.export.push import Push

TOKEN, READER = "hf_secret_that_may_write", "hf_secret_that_may_read"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants, file_download, hf_api

    with model_hub(**{TOKEN: person("ada", "lab"), READER: person("ada", role="read")}) as running:
        for module in (constants, hf_api.constants, file_download.constants):
            monkeypatch.setattr(module, "ENDPOINT", running.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield running


def test_a_model_is_pushed_from_the_command_line_and_loads_from_the_hub(hub, tiny_model, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    said = run("export", tiny_model, "--out", tmp_path / "out", "--push", "lab/small", "--private")
    assert said.exit_code == 0, said.output
    assert "lab/small" in said.output
    assert TOKEN not in said.output
    held = hub.repositories["lab/small"]
    assert held.private
    assert {"model.safetensors", "config.json", "tokenizer.json", "generation_config.json"} <= held.files.keys()
    assert "export.json" not in held.files
    assert held.files["model.safetensors"] == (tmp_path / "out" / "model.safetensors").read_bytes()
    assert not any(TOKEN.encode() in content for content in held.files.values())

    there = AutoModelForCausalLM.from_pretrained("lab/small", cache_dir=tmp_path / "cache", token=TOKEN).state_dict()
    here = AutoModelForCausalLM.from_pretrained(tiny_model).state_dict()
    assert there.keys() == here.keys()
    assert all(torch.equal(there[name], here[name]) for name in here)
    assert AutoTokenizer.from_pretrained("lab/small", cache_dir=tmp_path / "cache", token=TOKEN).chat_template


def test_a_push_that_is_broken_off_goes_on_and_a_whole_one_is_not_repeated(hub, tiny_model, tmp_path):
    hub.answer = lambda method, path: 403 if "/commit/" in path else None
    with pytest.raises(ServiceError, match=r"was not uploaded to lab/small: .*the same command again") as told:
        trainers.export_model(tiny_model, tmp_path / "out", push="lab/small")
    assert TOKEN not in str(told.value)
    assert hub.repositories["lab/small"].commits == []
    sent = [path for method, path in hub.asked if method == "PUT"]
    assert sent

    hub.answer = lambda method, path: None
    hub.asked.clear()
    trainers.export_model(tiny_model, tmp_path / "out", push="lab/small")
    assert [path for method, path in hub.asked if method == "PUT"] == []  # the hub had the weights
    assert len(hub.repositories["lab/small"].commits) == 1

    hub.asked.clear()
    trainers.export_model(tiny_model, tmp_path / "out", push="lab/small")
    assert {method for method, _ in hub.asked} == {"GET"}
    assert len(hub.repositories["lab/small"].commits) == 1


def test_other_files_are_replaced_only_when_that_is_asked_for(hub, tiny_model, tmp_path):
    old = {"model-00001-of-00002.safetensors": b"old", "adapter_config.json": b"{}", "notes.md": b"kept"}
    hub.repositories["ada/small"] = Repository(files=dict(old))
    with pytest.raises(ConfigurationError, match="ada/small holds other files, such as adapter_config") as told:
        trainers.export_model(tiny_model, tmp_path / "out", push="ada/small")
    assert told.value.option == "update"
    assert hub.repositories["ada/small"].files == old
    trainers.export_model(tiny_model, tmp_path / "out", push="ada/small", update=True)
    files = hub.repositories["ada/small"].files
    assert not {"model-00001-of-00002.safetensors", "adapter_config.json"} & files.keys()  # they would be loaded too
    assert files["notes.md"] == b"kept"
    assert "model.safetensors" in files


def test_a_file_too_many_is_replaced_too(hub, tiny_model, tmp_path):
    trainers.export_model(tiny_model, tmp_path / "out", push="lab/small")
    held = hub.repositories["lab/small"]
    held.files["model-00002-of-00002.safetensors"] = b"old"
    with pytest.raises(ConfigurationError, match="holds other files, such as model-00002"):
        trainers.export_model(tiny_model, tmp_path / "out", push="lab/small")
    trainers.export_model(tiny_model, tmp_path / "out", push="lab/small", update=True)
    assert "model-00002-of-00002.safetensors" not in held.files


def test_no_message_of_a_refused_push_has_the_token(hub, tmp_path):
    (tmp_path / "config.json").write_text("{}")

    class Answer:
        """What the hub said."""

        def __init__(self, status: int) -> None:
            self.status_code = status

    push = Push("lab/small")
    for status, cause in ((403, "refused"), (500, "lost"), (None, "lost")):
        error = OSError(f"bad header: Bearer {TOKEN}\nmore")
        if status is not None:
            error.response = Answer(status)  # as the errors of huggingface_hub have it
        told = push._told(error, tmp_path)
        assert TOKEN not in str(told)
        assert "OSError: bad header: Bearer ***. " in str(told)
        assert ("does not have permission to write" in str(told)) == (status == 403)
        assert told.cause == cause


@pytest.mark.parametrize(
    ("name", "token", "said"),
    [
        ("lab/small", "", "needs a token"),
        ("lab/small", "hf_unknown", "rejects the token"),
        ("lab/small", READER, "does not have write permission"),
        ("other/small", TOKEN, "belongs to ada, who is not a member of 'other'"),
        ("small", TOKEN, "expected ORG/NAME"),
        ("lab/a b", TOKEN, "not the name of a repository"),
        ("lab/a--b", TOKEN, "not the name of a repository"),
        ("lab/a..b", TOKEN, "not the name of a repository"),
        ("lab/a.git", TOKEN, "not the name of a repository"),
    ],
)
def test_what_cannot_be_pushed_is_refused_before_anything_is_written(
    hub, tiny_model, tmp_path, monkeypatch, name, token, said
):
    from huggingface_hub import constants

    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match=said) as told:
        trainers.export_model(tiny_model, tmp_path / "out", push=name)
    assert not token or token not in str(told.value)
    assert not (tmp_path / "out").exists()
    assert not hub.repositories


def test_a_public_repository_does_not_get_what_is_to_be_private(hub, tiny_model, tmp_path):
    hub.repositories["lab/small"] = Repository(private=False)
    with pytest.raises(ConfigurationError, match="already exists and is public"):
        trainers.export_model(tiny_model, tmp_path / "out", push="lab/small", private=True)


def test_without_a_network_nothing_is_written(hub, tiny_model, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1:9 cannot be reached"):
        trainers.export_model(tiny_model, tmp_path / "out", push="lab/small")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigurationError, match="HF_HUB_OFFLINE"):
        trainers.export_model(tiny_model, tmp_path / "out", push="lab/small")
    assert not (tmp_path / "out").exists()


def test_an_adapter_of_a_model_on_this_machine_is_pushed_merged_alone(hub, tiny_model, tmp_path):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    policy = get_peft_model(
        AutoModelForCausalLM.from_pretrained(tiny_model), LoraConfig(r=2, target_modules="all-linear")
    )
    policy.save_pretrained(str(tmp_path / "adapter"))
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(str(tmp_path / "adapter"))
    with pytest.raises(ConfigurationError, match="others could not load") as told:
        trainers.export_model(tmp_path / "adapter", tmp_path / "out", push="lab/small")
    assert told.value.option == "merge"
    assert not hub.repositories
    trainers.export_model(tmp_path / "adapter", tmp_path / "out", push="lab/small", merge=True)
    config = json.loads(hub.repositories["lab/small"].files["config.json"])
    assert Path(tiny_model).name not in json.dumps(config)
