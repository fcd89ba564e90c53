"""Claims about GGUF files as models: converted once, exactly, and refused with the reason."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("gguf")

from cli_runner import run
from safetensors.numpy import load_file
from small_gguf import HIDDEN, TEMPLATE, stored_tensor, write_gguf

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.models import model_folder
from rstar2_env.rollout.engine import SamplingParams
from rstar2_env.rollout.pretrained import Pretrained, open_pretrained
from rstar2_env.trainers import make, sft


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.Q8_0.gguf")


@pytest.fixture(scope="module")
def folder(file):
    return file.parent / "tiny.Q8_0"


def test_a_file_becomes_a_folder_beside_it_with_the_dequantized_weights(file, folder):
    assert model_folder(str(file)) == str(folder)
    weights = load_file(folder / "model.safetensors")
    for name, stored in (
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight"),
    ):
        np.testing.assert_array_equal(weights[name], stored_tensor(file, stored))
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert config["hidden_size"] == HIDDEN
    assert "quantization_config" not in config
    assert (folder / "chat_template.jinja").read_text() == TEMPLATE


def test_a_converted_file_is_not_converted_again(file, folder):
    model_folder(file)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert model_folder(file) == str(folder)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_a_gguf_file_plays(file):
    engine, chat = open_pretrained(Pretrained(str(file)), max_rows=1)
    try:
        prompt = list(chat.prompt("", "2+2"))
        written = asyncio.run(engine.generate(prompt, SamplingParams(max_tokens=3, temperature=0.0)))
    finally:
        engine.close()
    assert 1 <= len(written.ids) <= 3


def test_a_gguf_file_is_checked_and_planned_by_its_name(file):
    assert run("validate", "--tokens", str(file)).exit_code in (0, 1)
    planned = run("plan", "--model", str(file), "--gpu", "cpu", "--gpus", "1", "--json")
    assert json.loads(planned.stdout)["model"]["parameters"] > 0


TRACE = {"messages": [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "4"}]}


@pytest.mark.parametrize("train", [lambda name: sft([TRACE], model=name), lambda name: make("grpo", model=name)])
def test_training_reads_a_gguf_file(tmp_path, monkeypatch, train):
    monkeypatch.chdir(tmp_path)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"PK\x03\x04 a zip")
    with pytest.raises(ConfigurationError, match=r"broken\.gguf is not a GGUF file: it starts with b'PK"):
        train(str(broken))


def test_an_architecture_that_transformers_cannot_read_is_refused_with_the_reason(tmp_path):
    file = write_gguf(tmp_path / "clip.gguf", architecture="clip")
    with pytest.raises(ConfigurationError, match=r"transformers .* cannot convert .*clip\.gguf: .*clip.*not supported"):
        model_folder(str(file))
    assert [path.name for path in tmp_path.iterdir()] == ["clip.gguf"]


def test_a_part_of_a_model_is_refused(tmp_path):
    part = tmp_path / "big-00001-of-00003.gguf"
    part.write_bytes(b"GGUF")
    with pytest.raises(ConfigurationError, match=r"one part of a model in several GGUF files.*--merge"):
        model_folder(part)


def test_a_folder_of_the_user_is_not_replaced(tmp_path):
    file = write_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"holds something else.*rstar2 model get"):
        model_folder(file)
    assert [path.name for path in (tmp_path / "tiny").iterdir()] == ["notes.txt"]


def test_another_file_of_the_same_name_is_told_from_the_converted_one(tmp_path):
    file = write_gguf(tmp_path / "tiny.gguf")
    model_folder(file)
    with file.open("ab") as stream:
        stream.write(b"\0")
    with pytest.raises(ConfigurationError, match="holds the model of another version of this file"):
        model_folder(file)
