"""The trainer of the cold start: the loss and gradients of full logits, whatever the passes; no more than it needs."""

import copy

import pytest
import torch
from datasets import Dataset
from tiny_models import VOCABULARY, tiny_gemma3, tiny_llama
from transformers import PrinterCallback, Qwen3MoeConfig, Qwen3MoeForCausalLM, TrainerCallback
from trl import SFTConfig

from rstar2_env.trainers.backends.trl.sft_trainer import SftTrainer

pytestmark = pytest.mark.train

LENGTHS = (5, 23, 9, 17, 23, 12)
WIDTH = max(LENGTHS)


def rows():
    torch.manual_seed(1)
    found = []
    for length in LENGTHS:
        mask = [0, 0, *(torch.rand(length - 2) < 0.6).int().tolist()]
        mask[-1] = 1
        found.append({"input_ids": torch.randint(3, VOCABULARY, (length,)).tolist(), "assistant_masks": mask})
    return found


class Gradients(TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.found = {name: weights.grad.clone() for name, weights in model.named_parameters() if weights.requires_grad}


def trained(model, tokenizer, folder, each=6, multiple=None, **options):
    """Train the model; return the gradients of the last step and the lines of metrics."""
    gradients = Gradients()
    arguments = SFTConfig(
        output_dir=str(folder),
        max_steps=1,
        per_device_train_batch_size=each,
        gradient_accumulation_steps=len(LENGTHS) // each,
        learning_rate=1e-3,
        max_length=None,
        pad_to_multiple_of=multiple,
        max_grad_norm=0.0,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
    )
    trainer = SftTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(rows()),
        processing_class=tokenizer,
        callbacks=[gradients],
        **options,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return gradients.found, [line for line in trainer.state.log_history if "loss" in line]


def by_full_logits(model):
    """The mean negative log-likelihood of the policy's tokens, row by row, and its gradients."""
    total, count = 0.0, 0
    for row in rows():
        ids, mask = torch.tensor([row["input_ids"]]), torch.tensor(row["assistant_masks"], dtype=torch.bool)
        logp = model(ids).logits[0, :-1].float().log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        total, count = total - logp[mask[1:]].sum(), count + int(mask[1:].sum())
    loss = total / count
    loss.backward()
    return float(loss), {name: weights.grad for name, weights in model.named_parameters()}


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model)


@pytest.mark.parametrize(
    ("each", "most", "multiple"),
    [(6, None, None), (6, WIDTH, None), (6, 2 * WIDTH, None), (3, 30, None), (3, 30, 8)],
    ids=["whole", "rows", "pairs", "accumulated", "repeated widths"],
)
@pytest.mark.parametrize("make", [tiny_llama, tiny_gemma3])
def test_loss_and_gradients_are_those_of_full_logits(make, each, most, multiple, tokenizer, tmp_path):
    model = make(tie_word_embeddings=True)
    loss, wanted = by_full_logits(copy.deepcopy(model))
    found, lines = trained(model, tokenizer, tmp_path, each, multiple, max_pass_tokens=most)
    assert lines[0]["loss"] == pytest.approx(loss, abs=1e-5)
    assert found.keys() == wanted.keys()
    for name, grad in wanted.items():
        torch.testing.assert_close(found[name], grad, rtol=1e-4, atol=1e-5)


def test_no_pass_computes_more_tokens_than_it_may(tokenizer, tmp_path):
    model, shapes = tiny_llama(), []
    model.model.register_forward_pre_hook(
        lambda module, args, given: shapes.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    trained(model, tokenizer, tmp_path, max_pass_tokens=2 * WIDTH)
    assert sum(rows for rows, _ in shapes) == len(LENGTHS)
    assert max(rows * width for rows, width in shapes) <= 2 * WIDTH
    assert sum(rows * width for rows, width in shapes) < len(LENGTHS) * WIDTH


def test_no_pass_has_more_rows_than_it_may(tokenizer, tmp_path):
    model, shapes = tiny_llama(), []
    model.model.register_forward_pre_hook(
        lambda module, args, given: shapes.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    trained(model, tokenizer, tmp_path, max_pass_rows=4)
    longest = sorted(LENGTHS, reverse=True)
    assert shapes == [(4, longest[0]), (len(LENGTHS) - 4, longest[4])]


def test_widths_of_passes_repeat_and_their_padding_counts_towards_the_limit(tokenizer, tmp_path):
    model, shapes = tiny_llama(), []
    model.model.register_forward_pre_hook(
        lambda module, args, given: shapes.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    trained(model, tokenizer, tmp_path, multiple=8, max_pass_tokens=46)
    assert sum(rows for rows, _ in shapes) == len(LENGTHS)
    assert all(width % 8 == 0 for _, width in shapes)
    assert max(rows * width for rows, width in shapes) <= 46


def test_the_head_computes_the_tokens_with_a_label_alone(tokenizer, tmp_path, monkeypatch):
    from rstar2_env.trainers.backends.trl.loss import cpu_head

    counted, whole = [], cpu_head._Head.logits
    monkeypatch.setattr(
        cpu_head._Head, "logits", lambda self, at: counted.append(at.stop - at.start) or whole(self, at)
    )
    trained(tiny_llama(), tokenizer, tmp_path)
    assert sum(counted) == sum(sum(row["assistant_masks"]) for row in rows())


def test_the_metrics_of_a_step_need_no_distribution(tokenizer, tmp_path):
    _, lines = trained(tiny_llama(), tokenizer, tmp_path)
    assert {"loss", "speed/train_tokens_per_second", "memory/peak_gib"} <= lines[0].keys()
    assert not {"entropy", "mean_token_accuracy"} & lines[0].keys()


def test_experts_are_balanced_over_the_micro_batch(tokenizer, tmp_path):
    """Passes of equal length add up to the load-balancing loss of their mean."""
    torch.manual_seed(0)
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        moe_intermediate_size=16,
        num_experts=4,
        num_experts_per_tok=2,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        output_router_logits=True,
        router_aux_loss_coef=0.5,
    )
    model = Qwen3MoeForCausalLM(config)
    wanted = by_full_logits(copy.deepcopy(model))[0]
    balance = 0.0
    every = sum(LENGTHS)
    for row in rows():
        ids = torch.tensor([row["input_ids"]])
        with torch.no_grad():
            given = model(ids, attention_mask=torch.ones_like(ids), output_router_logits=True)
        balance += float(given.aux_loss) * ids.numel() / every
    _, lines = trained(model, tokenizer, tmp_path, max_pass_tokens=1)
    assert lines[0]["loss"] == pytest.approx(wanted + 0.5 * balance, abs=1e-4)
