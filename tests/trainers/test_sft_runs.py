"""Whole cold starts: adapters are trained on, every trace of a batch trains, a stopped run goes on where it was."""

import gc
import json
import shutil
from itertools import pairwise

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run

pytestmark = pytest.mark.train

IDS = torch.tensor([[7, 20, 33, 41, 58, 9, 12]])


def trace(question, answer):
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


TRACES = [trace(f"say {letter}", letter * 3) for letter in "abcdefghijklmnopqrstuvwx"]


def sft(folder, model, **options):
    defaults = {"batch_size": 12, "rows_per_device": 8, "learning_rate": 1e-2, "steps": 4, "threads": 2}
    return trainers.sft(TRACES, model=str(model), output_dir=str(folder), progress=False, **{**defaults, **options})


def logits(folder):
    with torch.no_grad():
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()(IDS).logits


def steps_of(folder):
    """Steps of a run, by the event of its end."""
    event = json.loads((folder / "events.jsonl").read_text().splitlines()[-1])
    assert event["event"] == "finished"
    return event["step"]


@pytest.fixture(scope="module")
def cold_start(tiny_model, tmp_path_factory):
    """A cold start with adapters of rank 4 that learned something."""
    folder = sft(tmp_path_factory.mktemp("cold") / "sft", tiny_model, lora_rank=4)
    assert (folder / "adapter_model.safetensors").exists()
    assert (logits(folder) - logits(tiny_model)).abs().max() > 0.1
    return folder


def test_batches_are_drawn_at_random_and_not_by_length(tiny_model, tmp_path, monkeypatch):
    """A training that ends with the shortest traces forgets what only long traces show."""
    from rstar2_env.trainers.backends.trl.sft_trainer import SftTrainer

    lengths, step = [], SftTrainer.training_step

    def counted(self, model, inputs, *others):
        lengths.append(inputs["attention_mask"].sum(1).tolist())
        return step(self, model, inputs, *others)

    monkeypatch.setattr(SftTrainer, "training_step", counted)
    letters = [letter * length for length in range(1, 9) for letter in "abcdefghijklmnopqrst"]
    traces = [trace(f"say {text[0]}", text) for text in letters]
    options = {"batch_size": 4, "learning_rate": 1e-4, "threads": 1, "progress": False}
    trainers.sft(traces, model=str(tiny_model), output_dir=str(tmp_path / "sft"), **options)
    tokens = list(map(sum, lengths))
    assert sum(map(len, lengths)) == len(traces)
    assert sum(first < second for first, second in pairwise(tokens)) > len(tokens) / 4, tokens


def test_a_batch_of_12_in_passes_of_at_most_8_trains_on_12(tiny_model, tmp_path):
    folder = sft(tmp_path / "sft", tiny_model, steps=None, epochs=1.0)
    assert steps_of(folder) == len(TRACES) / 12


@pytest.mark.parametrize("rank", [4, 2, 0])
def test_a_cold_start_goes_on_from_an_adapter(cold_start, tmp_path, rank):
    again = sft(tmp_path / "again", cold_start, lora_rank=rank, learning_rate=1e-12, steps=1)
    assert (again / "adapter_config.json").exists() is (rank > 0)
    torch.testing.assert_close(logits(again), logits(cold_start), rtol=1e-4, atol=1e-4)
    learned = sft(tmp_path / "learned", cold_start, lora_rank=rank, steps=3)
    assert (logits(learned) - logits(cold_start)).abs().max() > 1e-3


@pytest.mark.parametrize("rank", [4, 2, 0])
def test_reinforcement_learning_starts_from_the_cold_start(cold_start, letter_options, rank):
    options = {**letter_options, "model": str(cold_start), "lora_rank": rank, "learning_rate": 1e-12, "steps": 1}
    trainer = trainers.make("grpo_clip_higher", **options)
    try:
        result = trainer.train()
    finally:
        trainer.close()
    torch.testing.assert_close(logits(result.model_dir), logits(cold_start), rtol=1e-4, atol=1e-4)


def test_a_stopped_cold_start_of_adapters_ends_where_an_unbroken_one_does(tiny_model, tmp_path):
    options = {"lora_rank": 4, "lora_dropout": 0.1, "save_every": 2}
    whole = sft(tmp_path / "whole", tiny_model, **options)
    broken = tmp_path / "broken"
    shutil.copytree(whole / "checkpoint-2", broken / "checkpoint-2")
    shutil.copy(whole / "sft.json", broken)
    resumed = sft(broken, tiny_model, **options, resume=True)
    expected, found = (load_file(folder / "adapter_model.safetensors") for folder in (whole, resumed))
    half = load_file(whole / "checkpoint-2" / "adapter_model.safetensors")
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)
    assert any((half[name] - value).abs().max() > 1e-3 for name, value in expected.items())


def test_checkpoints_are_written_unless_they_are_declined(tiny_model, tmp_path):
    folder = sft(tmp_path / "default", tiny_model, steps=20)
    assert sorted(path.name for path in folder.glob("checkpoint-*")) == ["checkpoint-18", "checkpoint-20"]
    assert not list(sft(tmp_path / "none", tiny_model, steps=2, save_every=0).glob("checkpoint-*"))


def test_the_only_step_of_a_cold_start_trains_at_the_full_rate(tiny_model, tmp_path):
    folder = sft(tmp_path / "sft", tiny_model, steps=1, warmup_ratio=0.03)
    assert (logits(folder) - logits(tiny_model)).abs().max() > 1e-3
    assert [line["learning_rate"] for line in read_run(folder).metrics()] == [1e-2]


@pytest.mark.parametrize(("rank", "rate"), [(0, 3e-4), (4, 3e-3)])
def test_without_a_learning_rate_the_size_of_the_model_chooses_it(tiny_model, tmp_path, rank, rate):
    folder = sft(tmp_path / "sft", tiny_model, steps=1, lora_rank=rank, learning_rate=None)
    assert [line["learning_rate"] for line in read_run(folder).metrics()] == [pytest.approx(rate)]


def test_reinforcement_learning_without_a_learning_rate_takes_the_one_of_the_models_size(letter_options):
    trainer = trainers.make("grpo_roc", **{**letter_options, "steps": 1, "learning_rate": None})
    try:
        result = trainer.train()
    finally:
        trainer.close()
    assert [line["learning_rate"] for line in read_run(result.output_dir).metrics()] == [pytest.approx(1e-5)]
    assert "by the size of the model" in (result.output_dir / "events.jsonl").read_text()


def test_a_cold_start_leaves_no_weights_in_memory(tiny_model, tmp_path):
    """Trainer and callbacks refer to each other: without a collection, the weights stay beside the next ones."""
    gc.collect()
    before = _weights_alive()
    sft(tmp_path / "sft", tiny_model, steps=1)
    assert _weights_alive() == before


def _weights_alive():
    return sum(type(one) is torch.nn.Parameter for one in gc.get_objects())


def test_every_step_of_a_short_cold_start_has_its_loss_speed_and_memory(tiny_model, tmp_path):
    metrics = read_run(sft(tmp_path / "sft", tiny_model, steps=3)).metrics()
    assert [line["step"] for line in metrics] == [1, 2, 3]
    for line in metrics:
        assert line["loss"] > 0
        assert line["speed/train_tokens_per_second"] > 0
        assert 0.05 < line["memory/peak_gib"] < 64


def test_what_cannot_be_resumed_is_refused_before_the_model_is_loaded(tiny_model, tmp_path):
    folder = sft(tmp_path / "sft", tiny_model, steps=2, save_every=1)
    with pytest.raises(ConfigurationError, match="already holds a cold start"):
        sft(folder, tiny_model)
    with pytest.raises(ConfigurationError, match=r"batch_size was 12 and is 6.*max_length was 4096 and is 64"):
        sft(folder, tiny_model, batch_size=6, max_length=64, resume=True)
    with pytest.raises(ConfigurationError, match="done 2 of 2 steps"):
        sft(folder, tiny_model, steps=2, resume=True)
    with pytest.raises(ConfigurationError, match="no run to resume"):
        sft(tmp_path / "mistyped", tiny_model, resume=True)
    sft(folder, tiny_model, steps=3, resume=True)
    assert steps_of(folder) == 3


def test_epochs_that_are_done_are_not_trained_again(tiny_model, tmp_path):
    folder = sft(tmp_path / "sft", tiny_model, steps=None, save_every=1)
    before = logits(folder)
    with pytest.raises(ConfigurationError, match="done 2 of 2 steps"):
        sft(folder, tiny_model, steps=None, save_every=1, resume=True)
    assert torch.equal(logits(folder), before)
