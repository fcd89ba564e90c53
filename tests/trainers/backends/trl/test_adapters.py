"""A model that brings an adapter: it is trained on, merged, or given a new one, and no cold start is lost."""

import json
import shutil

import pytest
import torch
from peft import LoraConfig, PeftModel, PrefixTuningConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.backends.trl.adapters import START_DIR, without_dropout
from rstar2_env.trainers.backends.trl.model import load_policy
from rstar2_env.trainers.options.config import ModelOptions

IDS = torch.tensor([[7, 20, 33, 41, 58, 9, 12]])


def logits(model):
    with torch.no_grad():
        return model.eval()(IDS).logits


@pytest.fixture(scope="module")
def cold_start(tiny_model, tmp_path_factory):
    """Folder of a trained adapter of rank 4, alpha 6, and what the model computes with it."""
    folder = tmp_path_factory.mktemp("cold") / "adapter"
    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    torch.manual_seed(0)
    config = LoraConfig(r=4, lora_alpha=6, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    policy = get_peft_model(base, config)
    policy.save_pretrained(str(folder))
    expected = logits(policy)
    with policy.disable_adapter():
        assert (logits(policy) - expected).abs().max() > 0.1
    return folder, expected


def load(folder, run, **options):
    return load_policy(ModelOptions(str(folder), **options), run)


def test_the_same_adapter_goes_on_training_and_computes_what_it_did(cold_start, tmp_path):
    folder, expected = cold_start
    policy, _ = load(folder, tmp_path, lora_rank=4)
    assert torch.equal(logits(policy), expected)
    trained = {name for name, weights in policy.named_parameters() if weights.requires_grad}
    assert trained
    assert all(".lora_" in name for name in trained)
    assert policy.peft_config["default"].lora_alpha == 6
    policy(IDS).logits.sum().backward()
    assert any(weights.grad is not None and weights.grad.any() for weights in policy.parameters())


def test_without_a_rank_it_is_merged_and_every_weight_trains(cold_start, tmp_path):
    folder, expected = cold_start
    policy, _ = load(folder, tmp_path)
    assert not isinstance(policy, PeftModel)
    torch.testing.assert_close(logits(policy), expected, rtol=1e-5, atol=1e-5)
    assert all(weights.requires_grad for weights in policy.parameters())
    policy.save_pretrained(str(tmp_path / "full"))
    torch.testing.assert_close(logits(AutoModelForCausalLM.from_pretrained(tmp_path / "full")), logits(policy))


@pytest.mark.parametrize("options", [{"lora_rank": 2}, {"lora_rank": 4, "lora_alpha": 8}])
def test_another_adapter_stands_on_the_merged_model_and_its_result_holds_the_cold_start(cold_start, tmp_path, options):
    folder, expected = cold_start
    policy, _ = load(folder, tmp_path / "run", **options)
    torch.testing.assert_close(logits(policy), expected, rtol=1e-5, atol=1e-5)
    assert policy.peft_config["default"].r == options["lora_rank"]
    with torch.no_grad():
        for name, weights in policy.named_parameters():
            if "lora_B" in name:
                weights.add_(0.05)
    policy.save_pretrained(str(tmp_path / "result"))
    found = logits(AutoModelForCausalLM.from_pretrained(tmp_path / "result"))
    torch.testing.assert_close(found, logits(policy), rtol=1e-4, atol=1e-4)
    assert (found - expected).abs().max() > 0.1
    torch.testing.assert_close(
        logits(AutoModelForCausalLM.from_pretrained(tmp_path / "run" / START_DIR)), expected, rtol=1e-5, atol=1e-5
    )


def test_other_targets_are_another_adapter_and_the_same_ones_are_not(cold_start, tmp_path):
    folder, _ = cold_start
    names = json.loads((folder / "adapter_config.json").read_text())["target_modules"]
    same, _ = load(folder, tmp_path, lora_rank=4, lora_targets=sorted(names))
    assert same.peft_config["default"].lora_alpha == 6
    assert not (tmp_path / START_DIR).exists()
    other, _ = load(folder, tmp_path, lora_rank=4, lora_targets=["q_proj"])
    assert {name.split(".")[-4] for name, _ in other.named_parameters() if "lora_A" in name} == {"q_proj"}


def test_a_loaded_model_of_peft_is_taken_up_like_its_folder(cold_start, tiny_model, tmp_path):
    folder, expected = cold_start
    for rank in (4, 0):
        loaded = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny_model), str(folder))
        policy, _ = load_policy(ModelOptions(loaded, lora_rank=rank), tmp_path)
        torch.testing.assert_close(logits(policy), expected, rtol=1e-5, atol=1e-5)
        assert any(weights.requires_grad for weights in policy.parameters())


def test_an_adapter_inside_a_model_of_transformers_is_refused(cold_start, tmp_path):
    loaded = AutoModelForCausalLM.from_pretrained(cold_start[0])
    with pytest.raises(ConfigurationError, match="pass the folder of the adapter"):
        load_policy(ModelOptions(loaded, lora_rank=4), tmp_path)


def test_a_new_adapter_has_the_options_and_changes_nothing_yet(tiny_model, tmp_path):
    options = {"lora_rank": 2, "lora_alpha": 10.0, "lora_targets": ["q_proj", "v_proj"]}
    policy, _ = load(tiny_model, tmp_path, **options)
    found = policy.peft_config["default"]
    assert (found.r, found.lora_alpha, set(found.target_modules)) == (2, 10.0, {"q_proj", "v_proj"})
    assert torch.equal(logits(policy), logits(AutoModelForCausalLM.from_pretrained(tiny_model)))
    policy, _ = load(tiny_model, tmp_path, lora_rank=3)
    assert policy.peft_config["default"].lora_alpha == 6


def test_a_new_adapter_is_drawn_from_the_seed_alone(tiny_model, tmp_path):
    def drawn(seed):
        torch.rand(seed + 1)  # what was drawn before does not matter
        before = torch.get_rng_state()
        policy, _ = load_policy(ModelOptions(str(tiny_model), lora_rank=2), tmp_path, seed=seed)
        assert torch.equal(torch.get_rng_state(), before)
        return {name: weights.clone() for name, weights in policy.named_parameters() if "lora_A" in name}

    one, again, other = drawn(3), drawn(3), drawn(4)
    assert all(torch.equal(again[name], weights) for name, weights in one.items())
    assert not any(torch.equal(other[name], weights) for name, weights in one.items())


def test_targets_that_are_not_there_are_named(tiny_model, tmp_path):
    with pytest.raises(ConfigurationError, match="nowhere_proj"):
        load(tiny_model, tmp_path, lora_rank=2, lora_targets=["nowhere_proj"])


def test_an_adapter_whose_model_is_gone_is_told_by_name(cold_start, tmp_path):
    folder = tmp_path / "moved"
    shutil.copytree(cold_start[0], folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(tmp_path / "gone")
    (folder / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match=r"belongs to the model .*/gone, which does not exist"):
        load(folder, tmp_path, lora_rank=4)


def test_another_kind_of_adapter_is_refused(tiny_model, tmp_path):
    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    other = get_peft_model(base, PrefixTuningConfig(num_virtual_tokens=2, task_type="CAUSAL_LM"))
    other.save_pretrained(str(tmp_path / "prefix"))
    with pytest.raises(ConfigurationError, match="PREFIX_TUNING"):
        load(tmp_path / "prefix", tmp_path)


def test_reinforcement_learning_refuses_dropout_and_switches_off_what_a_model_has(tiny_model, tmp_path):
    with pytest.raises(ConfigurationError, match="lora_dropout applies only to the cold start"):
        load(tiny_model, tmp_path, lora_rank=2, lora_dropout=0.1)
    options = ModelOptions(str(tiny_model), lora_rank=2, lora_dropout=0.5)
    policy, _ = load_policy(options, tmp_path, dropout=True)
    with torch.no_grad():
        for name, weights in policy.named_parameters():
            if "lora_B" in name:
                weights.add_(0.05)
    policy.base_model.model.model.layers[0].self_attn.attention_dropout = 0.5
    policy.train()
    assert not torch.equal(policy(IDS).logits, policy(IDS).logits)
    without_dropout(policy)
    assert torch.equal(policy(IDS).logits, logits(policy))
    assert policy.base_model.model.model.layers[0].self_attn.attention_dropout == 0


def test_a_cold_start_with_dropout_is_trained_on_without(tiny_model, tmp_path):
    options = ModelOptions(str(tiny_model), lora_rank=2, lora_dropout=0.5)
    first, _ = load_policy(options, tmp_path, dropout=True)
    with torch.no_grad():
        for name, weights in first.named_parameters():
            if "lora_B" in name:
                weights.add_(0.05)
    first.save_pretrained(str(tmp_path / "cold"))
    policy, _ = load(tmp_path / "cold", tmp_path, lora_rank=2)
    assert torch.equal(policy.train()(IDS).logits, logits(policy))


def test_attention_and_revision_reach_the_model(tiny_model, tmp_path):
    policy, _ = load(tiny_model, tmp_path, attn_implementation="eager")
    assert policy.config._attn_implementation == "eager"
    with pytest.raises(ConfigurationError, match="no_such_attention"):
        load(tiny_model, tmp_path, attn_implementation="no_such_attention")


def test_an_adapter_without_a_tokenizer_has_that_of_its_model(cold_start, tiny_model, tmp_path):
    _, tokenizer = load(cold_start[0], tmp_path, lora_rank=4)
    assert tokenizer.get_vocab() == AutoTokenizer.from_pretrained(tiny_model).get_vocab()
