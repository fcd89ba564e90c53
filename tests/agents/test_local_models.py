"""Claims about agents that play with models in this process: what they sample, count and refuse, and RAST's shift."""

from __future__ import annotations

import pytest
import torch
from chat_families import FAMILIES, make_tokenizer
from letter_env import LetterEnv
from tiny_models import tiny_llama, tiny_qwen2

from rstar2_env.agents import make
from rstar2_env.agents.logit_transfer import LogitShift
from rstar2_env.core.errors import ConfigurationError, UnusableReplyError
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.testing import check_agent

SHORT = {"max_tokens": 12}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Four tiny models with one tokenizer, and one with another."""
    made = {}
    for number, name in enumerate(("large", "base", "trained", "other")):
        tokenizer = make_tokenizer(FAMILIES[0])
        if name == "other":
            tokenizer.add_tokens(["<extra>"])
        model = (tiny_llama if name == "large" else tiny_qwen2)(vocab_size=len(tokenizer), max_position_embeddings=4096)
        generator = torch.Generator().manual_seed(number)
        with torch.no_grad():
            for weight in model.parameters():
                weight += 0.2 * torch.randn(weight.shape, generator=generator)
        folder = tmp_path_factory.mktemp(name)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        made[name] = str(folder)
    return made


def turns(agent, count=2, seed=3):
    agent.reset("Say something.", {"system": "Be brief."}, seed=seed)
    return [agent.act("Say something.", {}) for _ in range(count)]


class FixedLogits(torch.nn.Module):
    def __init__(self, *logits):
        super().__init__()
        self._logits = torch.tensor([[logits]], dtype=torch.float32)

    def forward(self, input_ids, past_key_values=None, use_cache=None):
        return type("Out", (), {"logits": self._logits, "past_key_values": past_key_values})


class TestTheShift:
    def test_it_adds_what_training_changed(self):
        shift = LogitShift(FixedLogits(0, 2, 0), FixedLogits(0, 1, 0), 1.0)
        assert shift(torch.tensor([[5]]), torch.tensor([[1.0, 0.0, 0.0]])).tolist() == [[1.0, 1.0, 0.0]]

    def test_it_adds_as_much_as_it_is_told(self):
        shift = LogitShift(FixedLogits(0, 2, 0), FixedLogits(0, 1, 0), -0.5)
        assert shift(torch.tensor([[5]]), torch.tensor([[1.0, 0.0, 0.0]])).tolist() == [[1.0, -0.5, 0.0]]

    def test_rows_that_pad_a_vocabulary_stay_as_they_are(self):
        shift = LogitShift(FixedLogits(0, 2, 9), FixedLogits(0, 1), 1.0)
        assert shift(torch.tensor([[5]]), torch.tensor([[1.0, 0.0, 7.0]])).tolist() == [[1.0, 1.0, 7.0]]

    def test_read_token_by_token_the_models_say_what_they_say_of_the_whole(self, folders):
        agent = make("logit_transfer", model=folders["large"], trained=folders["trained"], base=folders["base"])
        trained, base = (small.model for small in agent._small)
        shift, ids = LogitShift(trained, base, 1.0), torch.tensor([[7, 3, 9, 4, 30]])
        zero = torch.zeros(1, trained.config.vocab_size)
        with torch.inference_mode():
            for length in range(1, 6):
                expected = (trained(ids[:, :length]).logits - base(ids[:, :length]).logits)[:, -1]
                assert torch.allclose(shift(ids[:, :length], zero), expected, atol=1e-4)


class TestLogitTransfer:
    def made(self, folders, **options):
        names = {"model": folders["large"], "trained": folders["trained"], "base": folders["base"]}
        return make("logit_transfer", **names, **SHORT, **options)

    @pytest.mark.parametrize("temperature", [0.0, 1.0])
    def test_without_strength_it_is_the_large_model_token_for_token(self, folders, temperature):
        alone = turns(make("policy", model=folders["large"], temperature=temperature, **SHORT))
        assert turns(self.made(folders, strength=0.0, temperature=temperature)) == alone
        assert turns(self.made(folders, temperature=temperature)) != alone

    def test_a_small_model_that_did_not_change_shifts_nothing(self, folders):
        alone = turns(make("policy", model=folders["large"], temperature=0.0, **SHORT))
        names = {"model": folders["large"], "trained": folders["base"], "base": folders["base"]}
        assert turns(make("logit_transfer", **names, temperature=0.0, **SHORT)) == alone

    def test_different_vocabularies_are_refused(self, folders):
        names = {"model": folders["large"], "trained": folders["other"], "base": folders["base"]}
        with pytest.raises(ConfigurationError, match=r"different vocabularies.* 1 differ, such as '<extra>'"):
            make("logit_transfer", **names)

    def test_it_keeps_the_contract(self, folders):
        names = {"model": folders["large"], "trained": folders["trained"], "base": folders["base"]}
        check_agent("logit_transfer", skip=["hostile_observations"], **names, max_tokens=4)


class TestPolicy:
    def test_it_keeps_the_contract(self, folders):
        check_agent("policy", skip=["hostile_observations"], model=folders["base"], max_tokens=4)

    def test_it_counts_what_it_samples(self, folders):
        agent = make("policy", model=folders["base"], **SHORT)
        episode = play_episode(LetterEnv(turns=3), agent)
        assert episode.usage["requests"] == 3
        assert 3 <= episode.usage["completion_tokens"] <= 36
        assert episode.usage["prompt_tokens"] > episode.usage["completion_tokens"]

    def test_what_it_generated_is_read_again_as_the_same_ids(self, folders):
        agent = make("policy", model=folders["base"], **SHORT)
        agent.reset("One.", {}, seed=0)
        agent.act("One.", {})
        before = list(agent._ids)
        agent.act("Two.", {})
        assert agent._ids[: len(before)] == before

    def test_the_state_of_torchs_own_generator_stays(self, folders):
        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        turns(make("policy", model=folders["base"], **SHORT))
        assert torch.equal(torch.random.get_rng_state(), before)

    def test_compositions_wrap_it_without_loading_it_again(self, folders):
        inner = f"policy:model={folders['base']},max_tokens=6"
        agent = make("self_consistency", agent=inner, k=4, early_stop=False)
        assert len(turns(agent, 1)) == 1
        assert agent.usage["requests"] == 4
        again = make("budget_forcing", agent=inner, least=50, waits=1)
        assert "Wait" in turns(again, 1)[0]
        assert again._asked._first._model is agent._asked._first._model

    def test_a_conversation_longer_than_the_model_reads_is_no_turn(self, folders):
        agent = make("policy", model=folders["base"], **SHORT)
        agent.reset("?", {}, seed=0)
        with pytest.raises(UnusableReplyError, match="accepts at most 4096"):
            agent.act("lorem ipsum " * 3000, {})

    def test_surrogates_are_no_reason_to_fail(self, folders):
        agent = make("policy", model=folders["base"], **SHORT)
        agent.reset("\ud800", {}, seed=0)
        assert isinstance(agent.act("\ud800", {}), str)

    def test_a_model_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(ConfigurationError, match="cannot be loaded"):
            make("policy", model=str(tmp_path))
