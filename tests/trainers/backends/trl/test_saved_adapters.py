"""What a run with adapters saves loads elsewhere: in transformers, in peft and in vLLM, as the adapter or merged."""

import json
import os
import subprocess
import sys

import pytest
import torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm_serve import needs_vllm

from rstar2_env import trainers

pytestmark = pytest.mark.train

PROMPT = [7, 20, 33, 41, 58]

SERVE = """
import json, sys
from vllm import LLM, SamplingParams
from vllm.lora.request import LoRARequest

base, adapter, prompt = json.loads(sys.argv[1])
engine = LLM(base, dtype="float32", enforce_eager=True, enable_lora=bool(adapter), kv_cache_memory_bytes=64 << 20,
             max_model_len=256, enable_chunked_prefill=False)
params = SamplingParams(max_tokens=8, temperature=0, logprobs=0, ignore_eos=True)
request = LoRARequest("policy", 1, adapter) if adapter else None
drawn = engine.generate({"prompt_token_ids": prompt}, params, lora_request=request, use_tqdm=False)[0].outputs[0]
scores = [next(iter(entry.values())).logprob for entry in drawn.logprobs]
print("RESULT", json.dumps([list(drawn.token_ids), scores]))
"""
QUIET = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}


@pytest.fixture
def saved(letter_options):
    """Folder of the final adapter of a run, and the policy itself."""
    options = {**letter_options, "lora_rank": 4, "learning_rate": 5e-2}
    trainer = trainers.make("grpo_clip_higher", **options)
    try:
        return trainer.train().model_dir, trainer.trl.accelerator.unwrap_model(trainer.trl.model).eval()
    finally:
        trainer.close()


def logits(model, ids):
    with torch.no_grad():
        return model.eval()(torch.tensor([ids])).logits


def served(base, adapter):
    done = subprocess.run(
        [sys.executable, "-c", SERVE, json.dumps([str(base), adapter and str(adapter), PROMPT])],
        env={**os.environ, **QUIET, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.partition("RESULT ")[2].splitlines()[0])


def test_transformers_and_peft_load_it(saved, tiny_model):
    folder, policy = saved
    expected = logits(policy, PROMPT)
    assert (logits(AutoModelForCausalLM.from_pretrained(tiny_model), PROMPT) - expected).abs().max() > 1e-2
    torch.testing.assert_close(logits(AutoModelForCausalLM.from_pretrained(folder), PROMPT), expected)
    torch.testing.assert_close(logits(AutoPeftModelForCausalLM.from_pretrained(folder), PROMPT), expected)


@pytest.mark.slow
@pytest.mark.parametrize("merged", [False, pytest.param(True, marks=pytest.mark.proof)])
def test_vllm_serves_it_as_an_adapter_and_merged(saved, tiny_model, tmp_path, merged):
    needs_vllm()
    folder, policy = saved
    base, adapter = tiny_model, folder
    if merged:
        base, adapter = tmp_path / "merged", None
        model = AutoPeftModelForCausalLM.from_pretrained(folder).merge_and_unload()
        model.save_pretrained(base)
        AutoTokenizer.from_pretrained(folder).save_pretrained(base)
    ids, scores = served(base, adapter)
    predicted = logits(policy, PROMPT + ids)[0, len(PROMPT) - 1 : -1].log_softmax(-1)
    assert predicted.argmax(-1).tolist() == ids
    expected = predicted.gather(1, torch.tensor(ids)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(scores), expected, rtol=0, atol=1e-3)
