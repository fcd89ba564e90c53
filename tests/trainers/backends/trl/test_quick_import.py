"""``GRPOTrainer`` is imported without vLLM, and TRL's own generation still imports it."""

import json
import subprocess
import sys

import pytest
from vllm_serve import needs_vllm

pytest.importorskip("trl", reason="this is about TRL: the extra 'train'")

PROGRAM = """
import json, sys
import rstar2_env.trainers.backends.trl.trainer
before = "vllm" in sys.modules
from trl.trainer import grpo_trainer
try:
    grpo_trainer.VLLMGeneration()
except TypeError as error:
    text = str(error)
real = sys.modules["trl.generation.vllm_generation"]
print("RESULT", json.dumps([before, text, hasattr(real, "LLM")]))
"""


@pytest.mark.slow
def test_vllm_is_imported_when_a_program_makes_trls_generation():
    needs_vllm()
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    before, text, imported = json.loads(done.stdout.partition("RESULT ")[2])
    assert not before
    assert "missing" in text
    assert "'model'" in text
    assert imported
