"""After a hand-over, one known prompt tells a corrupt or stale engine from one that has the policy's weights."""

import contextlib
import copy

import pytest
import torch
from tiny_models import VOCABULARY, tiny_qwen3
from transformers import AutoModelForCausalLM, AutoTokenizer

from rstar2_env.rollout import ChatCodec, TransformersEngine, VllmServerEngine
from rstar2_env.rollout.scheduling.several_engines import Scheduler
from rstar2_env.trainers.backends.trl.weight_sync.handover_probe import (
    TOLERANCE,
    HandoverError,
    HandoverProbe,
    known_prompt,
    trainer_logprobs,
)

PROMPT = [11, 29, 3, 45, 17, VOCABULARY - 1]


def probe_of(engine, policy, prompt=PROMPT, tolerance=TOLERANCE[torch.float32]):
    def score(before, ids):
        return trainer_logprobs(policy, contextlib.nullcontext, before, ids)

    return HandoverProbe(engine, prompt, score, tolerance=tolerance)


def trained(policy, seed=0):
    """The policy after a step of training: every weight moved."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for weights in policy.parameters():
            weights.add_(torch.randn_like(weights) * 0.02)
    return policy


class Deaf(TransformersEngine):
    """An engine whose update of the weights is skipped without a word."""

    def update_weights(self, version, weights=None):
        super().update_weights(version)


@contextlib.contextmanager
def closing(*engines):
    try:
        yield engines
    finally:
        for engine in engines:
            engine.close()


def test_an_engine_that_shares_the_module_agrees_whatever_the_weights_are():
    policy = tiny_qwen3()
    with closing(TransformersEngine(policy)) as (engine,):
        assert probe_of(engine, policy).check(0) < 1e-4
        trained(policy)
        engine.update_weights(1)
        assert probe_of(engine, policy).check(1) < 1e-4


def test_the_trainers_score_leaves_every_module_in_its_mode():
    policy = tiny_qwen3().train()
    policy.model.layers[0].eval()
    before = [module.training for module in policy.modules()]
    trainer_logprobs(policy, contextlib.nullcontext, PROMPT, [5, 6])
    assert [module.training for module in policy.modules()] == before


def test_corrupt_weights_stop_the_run_and_the_error_names_both_values_and_the_tolerance():
    policy = tiny_qwen3()
    own = copy.deepcopy(policy)
    with closing(TransformersEngine(own)) as (engine,):
        probe = probe_of(engine, policy)
        assert probe.check(0) < 1e-4
        corrupt = {name: weights.clone() for name, weights in policy.state_dict().items()}
        corrupt["model.layers.1.self_attn.o_proj.weight"].mul_(-1)
        engine.update_weights(1, corrupt)
        with pytest.raises(HandoverError, match=r"step 1.*log-probability -\d+\.\d+ in .* -\d+\.\d+ in .*0\.002"):
            probe.check(1)


def test_an_update_that_was_silently_skipped_stops_the_run():
    policy = tiny_qwen3()
    with closing(TransformersEngine(copy.deepcopy(policy)), Deaf(copy.deepcopy(policy))) as (hears, deaf):
        for engine in (hears, deaf):
            assert probe_of(engine, policy).check(0) < 1e-4
        trained(policy)
        for engine in (hears, deaf):
            engine.update_weights(1, policy.state_dict())
        assert probe_of(hears, policy).check(1) < 1e-4
        with pytest.raises(HandoverError, match="did not reach the engine"):
            probe_of(deaf, policy).check(1)


@pytest.mark.parametrize("deaf", [0, 1])
def test_every_engine_of_a_scheduler_is_asked(deaf):
    policy = tiny_qwen3()
    engines = [(Deaf if at == deaf else TransformersEngine)(copy.deepcopy(policy)) for at in range(2)]
    scheduler = Scheduler(engines, "static")
    with closing(scheduler):
        probe = probe_of(scheduler, policy)
        assert probe.check(0) < 1e-4
        scheduler.update_weights(1, trained(policy).state_dict())
        with pytest.raises(HandoverError):
            probe.check(1)


def test_weights_that_are_not_numbers_in_the_trainer_are_not_taken_for_agreement():
    policy = tiny_qwen3()
    with closing(TransformersEngine(copy.deepcopy(policy))) as (engine,):
        with torch.no_grad():
            policy.model.norm.weight.fill_(float("nan"))
        with pytest.raises(HandoverError, match="nan"):
            probe_of(engine, policy).check(0)


def policy_in(folder):
    policy = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
    chat = ChatCodec(AutoTokenizer.from_pretrained(str(folder)))
    prompt = known_prompt(chat)
    return policy, prompt


def holds(engine, policy, prompt):
    """Real updates pass, a corrupt one and a missing one do not."""
    probe = probe_of(engine, policy, prompt)
    engine.update_weights(1, policy)
    assert probe.check(1) < 1e-4
    trained(policy)
    with pytest.raises(HandoverError, match="did not reach the engine"):
        probe.check(2)
    engine.update_weights(2, policy)
    assert probe.check(2) < 1e-4
    corrupt = {name: weights.clone() for name, weights in policy.state_dict().items()}
    corrupt["model.layers.0.mlp.down_proj.weight"].mul_(-1)
    engine.update_weights(3, corrupt)
    with pytest.raises(HandoverError):
        probe.check(3)


@pytest.mark.slow
@pytest.mark.usefixtures("first_weights")
def test_vllm_in_process_is_told_from_a_stale_and_a_corrupt_one(vllm_engine, policy_folder):
    policy, prompt = policy_in(policy_folder)
    holds(vllm_engine, policy, prompt)


@pytest.mark.slow
def test_a_server_is_told_from_a_stale_and_a_corrupt_one(vllm_server, policy_folder, tmp_path):
    policy, prompt = policy_in(policy_folder)
    with closing(VllmServerEngine(vllm_server, weights_dir=tmp_path, start_timeout_s=240)) as (engine,):
        try:
            holds(engine, policy, prompt)
        finally:
            # Other tests use the server with the weights that it began with.
            engine.update_weights(4, policy_in(policy_folder)[0])
