"""Sizes of models are those that transformers gives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.plan.architecture import MODELS, architecture_of

torch = pytest.importorskip("torch", reason="models are made by torch")
transformers = pytest.importorskip("transformers", reason="models are made by transformers")

KINDS = {"qwen3-30b-a3b": "Qwen3Moe", "qwen3": "Qwen3", "qwen2.5": "Qwen2", "llama": "Llama"}
FIELDS = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden",
    "intermediate_size": "intermediate",
    "moe_intermediate_size": "intermediate",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "vocab_size": "vocabulary",
    "tie_word_embeddings": "tied",
    "num_experts": "experts",
    "num_experts_per_tok": "active_experts",
}


@pytest.mark.parametrize(
    "name", ["qwen3-0.6b", "qwen3-14b", "qwen3-30b-a3b", "qwen2.5-1.5b", "qwen2.5-7b", "llama-3.1-8b"]
)
def test_parameters_are_those_of_the_model_that_transformers_makes(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    kind = next(kind for prefix, kind in KINDS.items() if name.startswith(prefix))
    known = {field: getattr(model, own) for field, own in FIELDS.items()}
    config = getattr(transformers, f"{kind}Config")(**known)
    with torch.device("meta"):
        made = getattr(transformers, f"{kind}ForCausalLM")(config)
    assert model.parameters == sum(parameter.numel() for parameter in made.parameters())
    # Also from the folder that it is saved in.
    config.save_pretrained(tmp_path)
    read = architecture_of(str(tmp_path))
    assert (read.parameters, read.active_parameters) == (model.parameters, model.active_parameters)
    assert read.cache_bytes() == model.cache_bytes()


def test_names_are_known_with_their_organisation_and_in_any_case() -> None:
    assert architecture_of("Qwen/Qwen3-14B") is MODELS["qwen3-14b"]
    assert MODELS["qwen3-14b"].cache_bytes() == 163_840


def test_a_model_that_is_not_known_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'qwen3-14b'"):
        architecture_of("qwen3-14")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "config.json of the folder"),
        ("{", "is not valid JSON"),
        (json.dumps({"model_type": "mamba"}), "type 'mamba' cannot be computed"),
        (json.dumps({"model_type": "qwen3", "num_attention_heads": 2}), "does not have the key hidden_size"),
    ],
)
def test_a_folder_without_a_configuration_that_can_be_read_is_refused(
    text: str | None, message: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        architecture_of(str(tmp_path))
