"""Which models share prefixes, and what a run says of one that cannot."""

import pytest
import torch
from tiny_models import VOCABULARY, tiny_gemma3, tiny_llama, tiny_qwen3
from training_rows import row
from transformers import FalconConfig, FalconForCausalLM, Lfm2Config, Lfm2ForCausalLM

from rstar2_env.trainers.backends.trl.loss.forward import set_head
from rstar2_env.trainers.backends.trl.loss.prefix_sharing import PrefixSharing

CPU = torch.device("cpu")


def checked(model, *others):
    for one in (model, *others):
        set_head(one, 1.0)
    sharing = PrefixSharing(model, *others)
    sharing.check(model, CPU, exact=True)
    return sharing


def attention_of_its_own():
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "bos_token_id": 1, "eos_token_id": 2}
    return FalconForCausalLM(FalconConfig(vocab_size=VOCABULARY, **shape))


def convolutions():
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    model = Lfm2ForCausalLM(
        Lfm2Config(vocab_size=VOCABULARY, num_hidden_layers=2, layer_types=["conv", "full_attention"], **shape)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6)
    return model


def dropping():
    return tiny_qwen3(attention_dropout=0.1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: tiny_qwen3(attn_implementation="eager"), "its attention is 'eager', not 'sdpa'"),
        (attention_of_its_own, "FalconForCausalLM does not use the attention functions"),
        (lambda: tiny_gemma3(use_bidirectional_attention=True), "its tokens attend to later tokens"),
        (
            lambda: tiny_llama(rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}),
            "its rotary embeddings depend on the longest row",
        ),
        (dropping, "it uses dropout"),
        (convolutions, "differ from those of separate rows by"),
    ],
)
def test_a_model_that_cannot_share_prefixes_says_why(make, reason):
    sharing = checked(make())
    assert not sharing.active
    assert reason in sharing.note
    assert sharing.note.startswith("optim.share_prefixes is on, but")
    group = [row(0, 4, 9, 1.0)] * 8
    assert sharing.divide(group, 4096) == ([], list(range(8)))


def test_a_teacher_that_cannot_share_prefixes_keeps_all_rows_separate():
    assert checked(tiny_qwen3(), tiny_llama()).active
    assert not checked(tiny_qwen3(), convolutions()).active


def test_rows_longer_than_a_sliding_window_are_separate():
    sharing = checked(tiny_gemma3(sliding_window=40))
    assert sharing.active
    assert sharing.note is None
    short, long = row(0, 30, 9, 1.0), row(1, 30, 11, 1.0)
    assert sharing.divide([short] * 4 + [long] * 4, 4096) == ([[0, 1, 2, 3]], [4, 5, 6, 7])
    assert checked(tiny_qwen3()).divide([long] * 4, 4096) == ([[0, 1, 2, 3]], [])


def test_a_run_that_does_not_share_prefixes_says_nothing():
    sharing = PrefixSharing()
    sharing.check(None, CPU, exact=True)
    assert sharing.note is None
    assert sharing.divide([row(0, 4, 9, 1.0)] * 2, 4096) == ([], [0, 1])
