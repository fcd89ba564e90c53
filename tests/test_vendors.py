"""No code here is one vendor's: what it calls exists in torch's ROCm build, and its branches take that build as it is.

A HIP build is put on as a mask: what torch says of itself and of its devices, on a machine that has none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from places import ROOT
from vendor_calls import vendor_calls

FOLDERS = ("rstar2_env", "agents", "envs_registry", "trainers", "benchmarks")
ABOUT_VENDORS = (ROOT / "rstar2_env/doctor", ROOT / "trainers/launch/devices.py")
"""Whose subject they are."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_called_that_one_vendor_has_alone(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(path.is_relative_to(one) for one in ABOUT_VENDORS)
        for line, what in vendor_calls(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import pynvml",
        "from flash_attn import flash_attn_func",
        "torch.cuda.get_device_capability()",
        "torch.cuda.nvtx.range_push('x')",
        "from torch.cuda import cudart",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "if torch.version.cuda: pass",
        "run(['nvidia-smi'])",
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    ],
)
def test_what_one_vendor_has_alone_is_found(line: str) -> None:
    assert len(list(vendor_calls(line))) == 1


@pytest.mark.parametrize(
    "line", ["torch.cuda.is_available()", "'''Not nvidia-smi.'''", "from torch.cuda import mem_get_info", "x = 'cuda'"]
)
def test_what_every_build_has_is_left_alone(line: str) -> None:
    assert list(vendor_calls(line)) == []


@pytest.fixture
def hip(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch as its ROCm build shows itself on an MI300X."""
    torch = pytest.importorskip("torch", reason="this is about torch")
    monkeypatch.setattr(torch.version, "hip", "7.2.53211")
    monkeypatch.setattr(torch.version, "cuda", None)
    says = {
        "is_available": lambda: True,
        "device_count": lambda: 8,
        "current_device": lambda: 0,
        "is_bf16_supported": lambda *_: True,
        "get_device_name": lambda *_: "AMD Instinct MI300X",
        "mem_get_info": lambda *_: (192 << 30, 192 << 30),
    }
    for name, answer in says.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    return torch


class TestAHipBuild:
    def test_trains_in_bfloat16_on_the_accelerator(self, hip: Any) -> None:
        from rstar2_env.trainers.backends.trl.model import dtype_of, on_accelerator, precision_options
        from rstar2_env.trainers.options.config import ModelOptions

        options = ModelOptions(path="m")
        assert on_accelerator()
        assert dtype_of(options) is hip.bfloat16
        assert precision_options(options) == {
            "use_cpu": False,
            "bf16": True,
            "fp16": False,
            "gradient_checkpointing": True,
        }

    def test_knows_its_peak(self, hip: Any) -> None:
        from rstar2_env.trainers.backends.trl.loss.flops import _peak_of, peak_of

        _peak_of.cache_clear()
        accelerator = SimpleNamespace(device=hip.device("cuda", 0), mixed_precision="bf16")
        try:
            assert peak_of(accelerator) == 1307.4e12
        finally:
            _peak_of.cache_clear()

    def test_caches_as_much_as_its_memory_holds(self, hip: Any) -> None:
        from rstar2_env.rollout.engines.room import free_bytes

        assert free_bytes(hip.device("cuda", 0)) == 192 << 30
        assert 0 < free_bytes(hip.device("cpu")) < 192 << 30

    def test_draws_are_kept_apart_on_its_devices(self, hip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        from rstar2_env.rollout.engines.vllm_setup import same_draws

        forked: list[Any] = []

        class Fork:
            def __init__(self, devices: Any) -> None:
                forked.extend(devices)

            def __enter__(self) -> None: ...

            def __exit__(self, *_: Any) -> None: ...

        monkeypatch.setattr(hip.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(hip.random, "fork_rng", Fork)
        with same_draws():
            pass
        assert forked == [0]

    def test_is_what_the_doctor_is_told_by_torch(self, tmp_path: Path) -> None:
        from rstar2_env.doctor.record import _TORCH_QUERY

        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text(
            "from types import SimpleNamespace as S\n"
            "from torch import version\n"
            "__version__ = '2.13.0+rocm7.2'\n"
            "one = S(name='AMD Instinct MI300X', gcnArchName='gfx942:sramecc+:xnack-', total_memory=206141652992)\n"
            "cuda = S(is_available=lambda: True, device_count=lambda: 2, get_device_properties=lambda n: one,\n"
            "         get_arch_list=lambda: ['gfx942', 'gfx950'], is_bf16_supported=lambda: True)\n"
        )
        (tmp_path / "torch" / "version.py").write_text("hip, cuda = '7.2.53211', None\n")
        done = subprocess.run(
            [sys.executable, "-c", _TORCH_QUERY], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        )
        found = json.loads(done.stdout)
        assert (found["hip"], found["cuda"], found["bf16"]) == ("7.2.53211", "", True)
        assert found["devices"] == [{"name": "AMD Instinct MI300X", "arch": "gfx942", "memory_bytes": 206141652992}] * 2
