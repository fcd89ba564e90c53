"""Log-probabilities of padded rows: those of each row alone, with no mask; and the model to compare with."""

import contextlib

import pytest
import torch
from tiny_models import VOCABULARY, tiny_gemma3, tiny_llama, tiny_qwen2, tiny_qwen3
from training_rows import few_rows
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.trainers.backends.trl.loss import forward as passes
from rstar2_env.trainers.backends.trl.loss import fused_head
from rstar2_env.trainers.backends.trl.loss.forward import ReferenceModel, causal, score, set_head
from rstar2_env.trainers.backends.trl.loss.micro_batches import lay_out

plain = contextlib.nullcontext


def rows():
    found = few_rows()
    for one in found:
        one.prompt_ids = [token % VOCABULARY for token in one.prompt_ids]
        one.completion_ids = [token % VOCABULARY for token in one.completion_ids]
    return found


@pytest.mark.parametrize("make", [tiny_qwen3, tiny_qwen2, tiny_llama, tiny_gemma3])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_padding_without_a_mask_changes_no_log_probability(make, attention):
    model = make(attn_implementation=attention)
    set_head(model, 0.7)
    given = rows()
    batch = lay_out(range(len(given)), given)
    together = score(model, batch, plain)
    for place, one in enumerate(given):
        with torch.no_grad():
            ids = torch.tensor([[*one.prompt_ids, *one.completion_ids]])
            logits = model(ids, attention_mask=torch.ones_like(ids)).logits[0, :-1].float() / 0.7
        logp = logits.log_softmax(-1)
        mask = batch.mask[place, : one.tokens - 1]
        expected = logp.gather(1, ids[0, 1:, None])[:, 0]
        torch.testing.assert_close(together.logp[place, : one.tokens - 1][mask], expected[mask], rtol=1e-5, atol=1e-5)
        entropy = -(logp.exp() * logp).sum(-1)
        torch.testing.assert_close(together.entropy[place, : one.tokens - 1][mask], entropy[mask], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [tiny_qwen3, tiny_gemma3])
def test_what_the_head_says_of_the_whole_vocabulary_is_that_of_its_distribution(make):
    """Gemma's logits are capped, and the vocabulary is folded in tiles."""
    model = make(**({"final_logit_softcapping": 3.0} if make is tiny_gemma3 else {}))
    given = rows()
    batch = lay_out(range(len(given)), given)
    set_head(model, 0.7, ("entropy", "mean_logp", "sum_squares"))
    together = score(model, batch, plain)
    assert not together.mean_logp.requires_grad
    for place, one in enumerate(given):
        ids = torch.tensor([[*one.prompt_ids, *one.completion_ids]])
        set_head(model, 1.0, ())
        with torch.no_grad():
            logp = (model(ids).logits[0, :-1].float() / 0.7).log_softmax(-1)
        mask = batch.mask[place, : one.tokens - 1]
        for found, wanted in ((together.mean_logp, logp.mean(-1)), (together.sum_squares, (2 * logp).exp().sum(-1))):
            torch.testing.assert_close(found[place, : one.tokens - 1][mask], wanted[mask], rtol=1e-4, atol=1e-5)
        assert not together.sum_squares[place, : one.tokens - 1][~mask].any()


def test_a_head_that_says_more_has_the_same_gradients():
    found = []
    for outputs in (("entropy",), ("entropy", "mean_logp", "sum_squares")):
        model = tiny_qwen3()
        set_head(model, 0.7, outputs)
        scores = score(model, lay_out([0, 1], rows()), plain)
        (scores.logp + 0.1 * scores.entropy).sum().backward()
        found.append({name: weights.grad for name, weights in model.named_parameters()})
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_a_head_without_the_means_follows_one_with_them():
    model = tiny_qwen3()
    set_head(model, 0.7, ("mean_logp",))
    set_head(model, 0.7)
    assert score(model, lay_out([0], rows()), plain).mean_logp is None


def by_trl(outputs):
    """TRL's function for accelerators on random tensors; it also runs on a CPU."""
    torch.manual_seed(0)
    hidden, weight, targets = torch.randn(5, 8), torch.randn(VOCABULARY, 8), torch.randint(VOCABULARY, (5,))
    found = fused_head._WithMeanLogp.apply(hidden, weight, None, targets, 0.7, 16, None, 1.0, outputs)
    return found, (hidden @ weight.t() / 0.7).log_softmax(-1)


def test_on_an_accelerator_the_mean_is_that_of_the_log_probabilities():
    found, logp = by_trl(("log_probs", "mean_logits"))
    torch.testing.assert_close(found[3], logp.mean(-1), rtol=1e-5, atol=1e-5)
    assert by_trl(("log_probs",))[0][3] is None


def test_another_version_of_the_head_is_refused_where_its_parts_are_read(monkeypatch):
    monkeypatch.setattr(fused_head, "_SAVED", fused_head._SAVED[:-1])
    with pytest.raises(Rstar2Error, match=r"Install trl 1\.16"):
        by_trl(("log_probs", "mean_logits"))


def test_a_forward_method_without_the_names_to_replace_is_refused(monkeypatch):
    monkeypatch.setattr(fused_head, "_REPLACED", {**fused_head._REPLACED, "_of_another_version": None})
    with pytest.raises(Rstar2Error, match=r"does not use _of_another_version.*Install trl 1\.16"):
        set_head(tiny_qwen3(), 0.7)


def test_an_embedding_is_the_mean_of_the_last_layer_over_the_policys_tokens():
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(tiny_qwen3(), LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    set_head(model, 0.7)
    given = rows()
    scores = score(model, lay_out(range(len(given)), given), plain, embed=True)
    assert scores.embedding.requires_grad
    for place, one in enumerate(given):
        ids = torch.tensor([[*one.prompt_ids, *one.completion_ids]])
        with torch.no_grad():
            last = model(ids, output_hidden_states=True).hidden_states[-1][0]
        own = last[len(one.prompt_ids) :][torch.tensor(one.mask, dtype=torch.bool)].mean(0)
        torch.testing.assert_close(scores.embedding[place].detach(), own, rtol=1e-4, atol=1e-5)
    assert score(model, lay_out([0], given), plain).embedding is None


def test_gradients_are_those_with_a_mask(monkeypatch):
    given = rows()
    found = []
    for masked in (False, True):
        model = tiny_qwen3()
        set_head(model, 1.0)
        monkeypatch.setattr(passes, "causal", lambda model, masked=masked: not masked)
        score(model, lay_out(range(len(given)), given), plain).logp.sum().backward()
        found.append({name: weights.grad for name, weights in model.named_parameters()})
    for name, value in found[0].items():
        torch.testing.assert_close(value, found[1][name], rtol=1e-4, atol=1e-5)


class Spy(torch.nn.Module):
    """A model that says whether it was given a mask."""

    def __init__(self, model):
        super().__init__()
        self.module = model

    def forward(self, **inputs):
        self.masked = inputs.get("attention_mask") is not None
        return self.module(**inputs)


def test_a_model_whose_tokens_see_later_ones_gets_its_mask():
    model = Spy(tiny_gemma3())
    set_head(model, 1.0, ())
    batch = lay_out([0], rows())
    score(model, batch, plain)
    assert causal(model)
    assert not model.masked
    model.module.config.use_bidirectional_attention = True
    score(model, batch, plain)
    assert not causal(model)
    assert model.masked


def test_the_load_of_experts_does_not_count_padding():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "moe_intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "num_experts": 4}
    config = Qwen3MoeConfig(vocab_size=VOCABULARY, num_experts_per_tok=1, decoder_sparse_step=1, **sizes, **heads)
    model = Qwen3MoeForCausalLM(config).eval()
    set_head(model, 1.0, ())
    given = rows()
    narrow = score(model, lay_out([0], given), plain, balance=True)
    wide = lay_out([0], given)
    wide.ids, wide.labels, wide.attention = (
        torch.cat([part, torch.full((1, 30), fill)], dim=1)
        for part, fill in ((wide.ids, 0), (wide.labels, -100), (wide.attention, 0))
    )
    torch.testing.assert_close(score(model, wide, plain, balance=True).balance, narrow.balance)


def test_the_logits_of_a_row_are_never_made(monkeypatch):
    model = tiny_qwen3()
    set_head(model, 1.0)
    monkeypatch.setattr(model.lm_head, "forward", lambda *_: pytest.fail("the whole head was computed"))
    score(model, lay_out([0, 1], rows()), plain).logp.sum().backward()
    assert model.lm_head.weight.grad.abs().sum() > 0


def test_the_reference_stays_when_the_policy_moves_until_it_is_reset():
    policy = tiny_qwen3()
    reference = ReferenceModel(policy, torch.float32, 1.0)
    set_head(policy, 1.0)
    batch = lay_out([0, 1], rows())
    start = score(policy, batch, plain).logp.detach()
    torch.testing.assert_close(reference.score(policy, batch, plain), start)
    with torch.no_grad():
        for weights in policy.parameters():
            weights.add_(0.05)
    moved = score(policy, batch, plain).logp.detach()
    torch.testing.assert_close(reference.score(policy, batch, plain), start)
    assert not torch.allclose(moved, start, atol=1e-3)
    reference.reset(policy)
    torch.testing.assert_close(reference.score(policy, batch, plain), moved)


def test_the_reference_is_kept_in_the_precision_of_the_computation():
    reference = ReferenceModel(tiny_qwen3(), torch.bfloat16, 1.0)
    assert {weights.dtype for weights in reference.model.parameters()} == {torch.bfloat16}
    assert not any(weights.requires_grad for weights in reference.model.parameters())


@pytest.mark.parametrize("tied", [True, False])
def test_before_the_first_step_the_reference_computes_what_the_policy_does_under_autocast(tied):
    policy = tiny_qwen3(num_hidden_layers=4, tie_word_embeddings=tied)
    reference = ReferenceModel(policy, torch.bfloat16, 1.0, autocasts=True)
    assert next(reference.model.model.layers.parameters()).dtype == torch.bfloat16
    set_head(policy, 1.0)
    batch = lay_out([0, 1], rows())

    def autocast():
        return torch.autocast("cpu", torch.bfloat16)

    with torch.no_grad():
        start = score(policy, batch, autocast).logp
    assert torch.equal(reference.score(policy, batch, autocast), start)


def test_with_new_adapters_the_reference_is_the_model_without_them():
    from peft import LoraConfig, get_peft_model

    base = tiny_qwen3()
    set_head(base, 1.0)
    batch = lay_out([0, 1], rows())
    start = score(base, batch, plain).logp.detach()
    policy = get_peft_model(base, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    reference = ReferenceModel(None, torch.float32, 1.0)
    torch.testing.assert_close(reference.score(policy, batch, plain), start)
    assert not torch.allclose(score(policy, batch, plain).logp, start, atol=1e-3)
