"""What a run saved comes out as a folder that transformers loads, and computes what the policy computed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_runner import run
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.core.trust import UntrustedError, bounds
from rstar2_env.rollout import CHATML
from rstar2_env.trainers.export.source import find_weights

pytestmark = pytest.mark.train

PROMPT = [7, 20, 33, 41, 58]


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model.eval()(torch.tensor([PROMPT])).logits
    return found


def loaded(folder: Path, **options: Any) -> torch.Tensor:
    return logits(AutoModelForCausalLM.from_pretrained(folder, **options))


def trained(options: dict[str, Any], **more: Any) -> tuple[Path, torch.Tensor]:
    """The folder of a run, and what its policy computes at the end."""
    trainer = trainers.make("grpo_clip_higher", **{"learning_rate": 5e-2, "save_every": 1, **options, **more})
    try:
        trainer.train()
        policy = trainer.trl.accelerator.unwrap_model(trainer.trl.model)
        return Path(options["output_dir"]), logits(policy)
    finally:
        trainer.close()


@pytest.fixture
def options(letter_options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in letter_options.items() if name not in ("output_dir", "learning_rate")}


def test_of_a_run_every_kind_of_weights(options, tiny_model, tmp_path):
    mine = {**options, "output_dir": str(tmp_path / "run"), "chat_template": CHATML + " "}
    folder, expected = trained(mine)
    assert (loaded(tiny_model) - expected).abs().max() > 1e-2

    out = trainers.export_model(folder, tmp_path / "out" / "final", which="final")
    torch.testing.assert_close(loaded(out), expected)
    card = (out / "README.md").read_text("utf-8")
    assert "These are the weights after step 2 of 2." in card
    assert "Stored in float32" in card
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.chat_template == CHATML + " "  # the run's, not that of the model that it began with
    ended = GenerationConfig.from_pretrained(out).eos_token_id
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") in (ended if isinstance(ended, list) else [ended])
    assert not {"optimizer.pt", "complete.json", "run.json"} & {path.name for path in out.iterdir()}

    another = AutoModelForCausalLM.from_pretrained(tiny_model)  # the last step of so short a run may change nothing
    another.save_pretrained(folder / "checkpoint-1")
    first = trainers.export_model(folder, tmp_path / "first", which="checkpoint-1")
    torch.testing.assert_close(loaded(first), logits(another))

    half = trainers.export_model(folder / "final", tmp_path / "half", dtype="bfloat16")
    config = json.loads((half / "config.json").read_text("utf-8"))
    assert config["dtype"] == "bfloat16"
    assert loaded(half, dtype="auto").dtype == torch.bfloat16
    torch.testing.assert_close(loaded(half, dtype=torch.float32), expected, atol=0.1, rtol=0.1)

    with pytest.raises(ConfigurationError, match=r"no weights 'checkpoint-9'.*there are .*final, checkpoint-1"):
        find_weights(folder, "checkpoint-9")
    (folder / "checkpoint-1" / "complete.json").unlink()
    with pytest.raises(ConfigurationError, match="no weights 'checkpoint-1'"):
        find_weights(folder, "checkpoint-1")


def test_an_adapter_is_exported_as_it_is_or_merged(options, tiny_model, tmp_path):
    folder, expected = trained({**options, "output_dir": str(tmp_path / "run"), "lora_rank": 4})
    adapter = trainers.export_model(folder, tmp_path / "adapter", which="final")
    assert {"adapter_config.json", "adapter_model.safetensors"} <= {path.name for path in adapter.iterdir()}
    torch.testing.assert_close(loaded(adapter), expected)

    said = run("export", folder, "--which", "final", "--merge", "--out", tmp_path / "merged")
    assert said.exit_code == 0, said.output
    merged = tmp_path / "merged"
    assert not (merged / "adapter_config.json").exists()
    assert str(tiny_model) not in (merged / "config.json").read_text("utf-8")
    torch.testing.assert_close(loaded(merged), expected)
    assert "A LoRA adapter was merged into these weights" in (merged / "README.md").read_text("utf-8")
    assert "merged" not in (adapter / "README.md").read_text("utf-8")


def test_an_adapter_is_merged_in_the_precision_of_its_model_and_stored_in_the_one_that_is_asked_for(
    tiny_model, tmp_path
):
    from peft import LoraConfig, get_peft_model

    base = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.bfloat16)
    base.save_pretrained(tmp_path / "base")
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(tmp_path / "base")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.float32)
    policy = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    policy.save_pretrained(str(tmp_path / "adapter"))
    merged = trainers.export_model(tmp_path / "adapter", tmp_path / "merged", merge=True)
    assert loaded(merged, dtype="auto").dtype == torch.bfloat16
    torch.testing.assert_close(loaded(merged, dtype=torch.float32), logits(policy), atol=0.1, rtol=0.1)
    wide = trainers.export_model(tmp_path / "adapter", tmp_path / "wide", merge=True, dtype="float32")
    torch.testing.assert_close(loaded(wide, dtype="auto"), logits(policy))
    half = trainers.export_model(tmp_path / "adapter", tmp_path / "half", dtype="float16")
    assert {one.dtype for one in load_file(half / "adapter_model.safetensors").values()} == {torch.float16}
    assert (AutoTokenizer.from_pretrained(half).chat_template) == AutoTokenizer.from_pretrained(
        tiny_model
    ).chat_template


@pytest.mark.parametrize("rank", [0, 4])
def test_a_sharded_checkpoint_becomes_an_ordinary_folder(options, tmp_path, rank):
    folder, expected = trained(
        {**options, "output_dir": str(tmp_path / "run")}, sharding="fsdp2", lora_rank=rank, keep_checkpoints=2
    )
    last = find_weights(folder, "checkpoint-2")
    assert last.sharded
    assert not any(last.folder.glob("*.safetensors"))
    out = trainers.export_model(folder, tmp_path / "out", which="checkpoint-2", merge=True)
    torch.testing.assert_close(loaded(out), expected)
    assert not (out / "adapter_config.json").exists()
    if rank:
        adapter = trainers.export_model(folder, tmp_path / "adapter", which="checkpoint-2")
        assert (adapter / "adapter_config.json").is_file()
        torch.testing.assert_close(loaded(adapter), expected)
    assert AutoTokenizer.from_pretrained(out).chat_template


def test_of_a_cold_start_its_end_or_a_checkpoint(tiny_model, tmp_path):
    traces = [
        {"messages": [{"role": "user", "content": f"{n}"}, {"role": "assistant", "content": f"{n + 1}"}]}
        for n in range(8)
    ]
    options = {"model": str(tiny_model), "output_dir": str(tmp_path / "start"), "batch_size": 4, "save_every": 1}
    folder = trainers.sft(traces, **options, steps=2, learning_rate=5e-2, threads=1, progress=False)
    out = trainers.export_model(folder, tmp_path / "out")
    torch.testing.assert_close(loaded(out), loaded(folder))
    assert (loaded(out) - loaded(tiny_model)).abs().max() > 1e-3
    assert "as a cold start" in (out / "README.md").read_text("utf-8")
    first = trainers.export_model(folder, tmp_path / "first", which="checkpoint-1")
    torch.testing.assert_close(loaded(first), loaded(folder / "checkpoint-1"))


def test_of_a_pipeline_the_last_stage_that_made_weights(tiny_model, tmp_path):
    from rstar2_env.trainers.pipeline.file import read_pipeline
    from rstar2_env.trainers.pipeline.run import run_pipeline

    pipeline = {
        "stages": {
            "small": {"kind": "tiny_model", "hidden": 32, "layers": 1},
            "other": {"kind": "tiny_model", "hidden": 64, "layers": 1},
            "data": {"kind": "data", "problems": "arithmetic", "count": 4, "held_out_count": 2},
        }
    }
    (tmp_path / "two.json").write_text(json.dumps(pipeline))
    run_pipeline(read_pipeline(tmp_path / "two.json"), tmp_path / "run", progress=False)
    assert find_weights(tmp_path / "run").folder == tmp_path / "run/stages/other"
    out = trainers.export_model(tmp_path / "run", tmp_path / "out")
    torch.testing.assert_close(loaded(out), loaded(tmp_path / "run/stages/other"))
    RunWriter(tmp_path / "none", kind="pipeline", episodes=False).begin({}, config_file="pipeline.json")
    with pytest.raises(ConfigurationError, match=r"No stage .* has produced weights yet"):
        find_weights(tmp_path / "none")


def weights_of(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "config.json").write_text("{}")


class TestWhichWeights:
    """No weights are read to find them."""

    @pytest.mark.parametrize("value", ["trust_remote_code", "false", 1, True])
    def test_only_the_value_true_lets_a_model_run_its_own_code(self, value, tmp_path):
        writer = RunWriter(tmp_path / "run", episodes=False)
        writer.begin({"model": {"path": "x", "trust_remote_code": value}})
        weights_of(tmp_path / "run", "final")
        writer.event("saved", 4, path="final")
        with bounds(trust=True):
            assert find_weights(tmp_path / "run").runs_own_code() is (value is True)
        shutil.move(tmp_path / "run", tmp_path / "theirs")  # no longer the folder that this user began
        with bounds(), pytest.raises(UntrustedError, match=r"model\.trust_remote_code"):
            find_weights(tmp_path / "theirs").runs_own_code()

    def test_the_best_come_first_and_only_those_that_were_saved_whole(self, tmp_path):
        writer = RunWriter(tmp_path, episodes=False)
        writer.begin({})
        weights_of(tmp_path, "best", "final")
        with pytest.raises(ConfigurationError, match="best nor final weights: the run has not saved any weights"):
            find_weights(tmp_path)
        writer.event("saved", 4, path="final")
        assert find_weights(tmp_path).which == "final"
        writer.event("saved", 2, path="best")
        found = find_weights(tmp_path)
        assert (found.which, found.step) == ("best", 2)
        assert find_weights(tmp_path / "final").folder == tmp_path / "final"
        with pytest.raises(ConfigurationError, match="already selects the weights final"):
            find_weights(tmp_path / "final", "best")

    def test_a_cold_start_that_has_not_ended_has_no_final_weights(self, tmp_path):
        writer = RunWriter(tmp_path, kind="sft", episodes=False)
        writer.begin({})
        weights_of(tmp_path, ".")
        with pytest.raises(ConfigurationError, match="neither best nor final"):
            find_weights(tmp_path)
        writer.event("finished", 3)
        assert (find_weights(tmp_path).which, find_weights(tmp_path).step) == ("final", 3)

    def test_a_stage_that_is_done_again_has_no_weights_yet(self, tmp_path):
        writer = RunWriter(tmp_path, kind="pipeline", episodes=False)
        writer.begin({}, config_file="pipeline.json")
        (tmp_path / "stages").mkdir()
        weights_of(tmp_path / "stages", "first", "second")
        RunWriter(tmp_path / "stages" / "after", kind="evaluation").begin({})
        for stage in ("first", "second", "after"):
            writer.event("stage_began", 0, stage=stage, fingerprint="a")
            writer.event("stage_ended", 0, stage=stage, fingerprint="a", outputs={})
        assert find_weights(tmp_path).folder.name == "second"
        writer.event("stage_began", 0, stage="second", fingerprint="b")
        assert find_weights(tmp_path).folder.name == "first"

    def test_an_evaluation_has_none(self, tmp_path):
        RunWriter(tmp_path, kind="evaluation").begin({})
        with pytest.raises(ConfigurationError, match="of an evaluation, which has no weights"):
            find_weights(tmp_path)


class TestFolders:
    def test_the_same_export_is_not_made_again_and_another_does_not_go_over_it(self, tiny_model, tmp_path):
        out = trainers.export_model(tiny_model, tmp_path / "out")
        written = (out / "model.safetensors").stat().st_mtime_ns
        assert trainers.export_model(tiny_model, out) == out
        assert (out / "model.safetensors").stat().st_mtime_ns == written
        with pytest.raises(ConfigurationError, match="already holds an exported model"):
            trainers.export_model(tiny_model, out, dtype="bfloat16")
        again = shutil.copytree(tiny_model, tmp_path / "again")
        other = trainers.export_model(again, tmp_path / "other")
        os.utime(again / "model.safetensors", (1, 1))  # written again
        with pytest.raises(ConfigurationError, match="already holds an exported model"):
            trainers.export_model(again, other)
        (out / "export.json").unlink()
        said = run("export", tiny_model, "--out", out)
        assert said.exit_code == 2
        assert "already holds an exported model" in said.output
        assert "--overwrite" in said.output

    def test_what_lies_beside_the_folder_stays_and_what_failed_leaves_nothing(self, tiny_model, tmp_path, monkeypatch):
        mine = tmp_path / "out.part" / "mine.txt"
        mine.parent.mkdir()
        mine.write_text("mine")
        with monkeypatch.context() as broken:
            broken.setattr("rstar2_env.trainers.export.export._card", lambda *args: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                trainers.export_model(tiny_model, tmp_path / "out")
        assert os.listdir(tmp_path) == ["out.part"]
        out = trainers.export_model(tiny_model, tmp_path / "out")
        torch.testing.assert_close(loaded(out), loaded(tiny_model))
        assert mine.read_text() == "mine"
        assert sorted(os.listdir(tmp_path)) == ["out", "out.part"]
        assert out.stat().st_mode == mine.parent.stat().st_mode

    def test_an_empty_folder_where_one_stands_is_filled(self, tiny_model, tmp_path, monkeypatch):
        expected = sorted(os.listdir(trainers.export_model(tiny_model, tmp_path / "other")))
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        moved, move = [], shutil.move
        monkeypatch.setattr(shutil, "move", lambda path, to: moved.append(path.name) or move(path, to))
        trainers.export_model(tiny_model, ".")
        assert sorted(os.listdir()) == expected
        assert moved[-1] == "export.json"
        torch.testing.assert_close(loaded(tmp_path / "here"), loaded(tiny_model))

    def test_what_is_no_weights_is_refused_with_what_to_do(self, tiny_model, tmp_path):
        with pytest.raises(ConfigurationError, match="does not exist"):
            trainers.export_model(tmp_path / "nowhere", tmp_path / "out")
        with pytest.raises(ConfigurationError, match=r"neither the folder of a run .* There is one in ") as refused:
            trainers.export_model(tiny_model.parent, tmp_path / "out")
        assert "docs: rstar2 help troubleshooting#models" in refused.value.__notes__
        with pytest.raises(ConfigurationError, match="best, final or checkpoint-N"):
            find_weights(tiny_model, "newest")
        with pytest.raises(ConfigurationError, match="only one set of weights"):
            find_weights(tiny_model, "best")
        with pytest.raises(ConfigurationError, match="float32, bfloat16, float16"):
            trainers.export_model(tiny_model, tmp_path / "out", dtype="int8")
        with pytest.raises(ConfigurationError, match="apply only to an upload"):
            trainers.export_model(tiny_model, tmp_path / "out", private=True)
        assert not (tmp_path / "out").exists()
