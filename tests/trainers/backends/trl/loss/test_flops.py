"""Operations of training a model, and the peaks of devices."""

import pytest
import torch
from tiny_models import tiny_qwen3

from rstar2_env.trainers.backends.trl.loss.flops import flops_of, peak


def test_operations_are_six_a_weight_and_token_and_those_of_causal_attention():
    model = tiny_qwen3(tie_word_embeddings=False)
    products = sum(
        weights.numel() for name, weights in model.named_parameters() if weights.dim() == 2 and "embed" not in name
    )
    lengths = [40, 7]
    # Scores and values: 2 * 2 products of the size of all heads for each pair; three passes; half of the pairs.
    attention = sum(3 * 2 * 2 * 2 * 4 * 16 * length * length / 2 for length in lengths)
    assert flops_of(model, lengths) == pytest.approx(6 * products * sum(lengths) + attention)


def test_adapters_leave_out_the_gradient_of_the_frozen_weights():
    from peft import LoraConfig, get_peft_model

    model = tiny_qwen3()
    whole = flops_of(model, [30])
    assert flops_of(get_peft_model(model, LoraConfig(r=2, target_modules="all-linear")), [30]) == pytest.approx(
        whole * 2 / 3
    )


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("AMD Instinct MI300X", torch.bfloat16, 1307.4e12),
        ("AMD Instinct MI325X VF", torch.bfloat16, 1307.4e12),
        ("AMD Instinct MI355X", torch.bfloat16, 2516.6e12),
        ("NVIDIA H100 80GB HBM3", torch.bfloat16, 989e12),
        ("NVIDIA H200", torch.bfloat16, 989e12),
        ("NVIDIA A100-SXM4-80GB", torch.bfloat16, 312e12),
        ("NVIDIA B200", torch.bfloat16, 2250e12),
        ("Somebody's first accelerator", torch.bfloat16, None),
        ("NVIDIA H100 80GB HBM3", torch.float32, None),
    ],
)
def test_the_peak_of_a_device_is_known_or_absent(name, dtype, expected):
    assert peak(name, dtype) == expected
