"""Claims about what a model is: read from its files alone, and what fits it."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("gguf")

from cli_runner import run
from small_gguf import TEMPLATE, write_gguf
from tiny_models import tiny_gemma3, tiny_qwen3

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.models import model_folder
from rstar2_env.models.facts import read_facts, read_safetensors
from rstar2_env.models.suggested_learning_rates import suggest


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("facts") / "tiny.gguf")


@pytest.mark.parametrize("make", [tiny_qwen3, tiny_gemma3])
def test_the_parameters_of_a_folder_are_those_of_the_loaded_model(make, tmp_path):
    model = make()
    model.save_pretrained(str(tmp_path))
    facts = read_facts(tmp_path)
    assert facts.parameters == model.num_parameters()
    assert facts.bytes == 4 * facts.parameters
    assert (facts.kind, facts.layers, facts.context) == (model.config.model_type, 2, 512)
    assert facts.template is None


def test_a_gguf_file_and_its_folder_have_the_same_properties(file):
    ours, theirs = read_facts(file), read_facts(model_folder(str(file)))
    for name in ("kind", "parameters", "layers", "hidden", "vocabulary", "context", "template"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.template == TEMPLATE
    assert ours.precisions == ("f32", "q8_0")
    assert ours.bytes < theirs.bytes


def test_a_broken_file_of_weights_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(ConfigurationError, match=r"model\.safetensors is not a valid safetensors file: the header"):
        read_facts(tmp_path)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"{", "Expecting"),
        (b"[" * 100_000, "is not a valid safetensors file"),
        (b"[]", "is not a valid safetensors file"),
        (b'{"a": 7}', "tensor 'a' lacks"),
        (b'{"a": {"dtype": "F32", "shape": [1]}}', "tensor 'a' lacks"),
        (b'{"a": {"dtype": "F32", "shape": 1, "data_offsets": [0, 4]}}', "tensor 'a' lacks"),
        (b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}', "tensor 'a' lacks"),
        (b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 5]}}', "do not fit the file"),
        (b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}', "do not fit the file"),
        (b'{"a": {"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}}', "do not fit the file"),
        (b'{"a": {"dtype": 32, "shape": [1], "data_offsets": [0, 4]}}', "do not fit the file"),
        (b'{"a": {"dtype": "F32", "shape": [33], "data_offsets": [0, 4]}}', "do not fit the file"),
        (b'{"a": {"dtype": "F32", "shape": [' + b"1," * 64 + b'1], "data_offsets": [0, 4]}}', "do not fit the file"),
    ],
)
def test_a_header_of_weights_that_is_not_valid_is_an_error(header, said, tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(ConfigurationError, match=said):
        read_safetensors(file)


def test_a_header_that_is_longer_than_the_format_allows_is_not_read(tmp_path):
    file = tmp_path / "model.safetensors"
    with file.open("wb") as stream:
        stream.write((1 << 40).to_bytes(8, "little"))
        stream.truncate(1 << 41)  # without data on the disk
    with pytest.raises(ConfigurationError, match="more than 100000000"):
        read_safetensors(file)


def test_metadata_of_a_wrong_type_is_an_error(file, tmp_path):
    from gguf import GGUFWriter

    writer = GGUFWriter(str(tmp_path / "x.gguf"), "llama")
    writer.add_string("llama.block_count", "two")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ConfigurationError, match=r"llama\.block_count has the wrong type: 'two'"):
        read_facts(tmp_path / "x.gguf")


def test_show_prints_the_memory_and_suggested_options(tmp_path):
    tiny_qwen3().save_pretrained(str(tmp_path))
    shown = run("model", "show", str(tmp_path)).output
    assert "memory on this machine" in shown
    assert "chat template │ none: choose a chat template" in shown
    assert "Suggested (chosen for 0 million parameters): rstar2 sft --lr 0.0003" in " ".join(shown.split())


def test_show_says_what_a_folder_without_weights_leaves_unknown(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 64}')
    shown = run("model", "show", str(tmp_path)).output
    assert re.search(r"parameters +│ unknown: there are no weights +│", shown)
    assert re.search(r"context +│ unknown +│", shown)
    assert "Suggested" not in shown


def test_show_measures_what_it_is_asked_to(tmp_path):
    tiny_qwen3().save_pretrained(str(tmp_path))
    speed = json.loads(run("model", "show", str(tmp_path), "--measure", "--json").stdout)["speed"]
    assert min(speed["reading"], speed["writing"], speed["training"]) > 0


def test_the_suggested_rates_go_through_the_tried_points_and_fall_between_them():
    assert suggest(135_000_000).sft_learning_rate == 3e-4
    assert suggest(7_000_000_000).sft_learning_rate == 2e-5
    assert suggest(14_000_000_000).learning_rate == 1e-6
    rates = [suggest(int(number)).sft_learning_rate for number in (1.35e8, 5e8, 1.5e9, 3e9, 7e9)]
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) == 5
    assert suggest(135_000_000, lora=True).sft_learning_rate == 3e-3


def test_only_a_model_that_can_be_pretrained_warms_up():
    assert [(suggest(count).warmup_steps, suggest(count).warmup_ratio) for count in (500_000, 135_000_000)] == [
        (0, 0.03),
        (5, 0.1),
    ]


def test_the_suggested_length_stays_within_the_context():
    assert suggest(7_000_000_000, context=1000).max_length == 1000
