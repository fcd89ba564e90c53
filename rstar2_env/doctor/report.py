"""``report``: fills in a Markdown form with the state of a machine and the metrics of a run.

The empty form is docs/gpu-report.md. Covered: the machine, its software, the checks, and the metrics of a run. Not
covered: observations of the person who ran the checks; the cells for them stay empty.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

from rstar2_env.core.run_folder import Run
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult
from rstar2_env.doctor.rocm_versions import VLLM_IMAGE

OPEN = "…"
"""Text of an empty cell in the form docs/gpu-report.md."""

_STEPS = (
    ("The image, or the installation", f"`docker build -f docker/rocm/Dockerfile .` on `{VLLM_IMAGE}`"),
    ("Checks", "`rstar2 doctor`"),
    ("Demonstration on the accelerator", "`make train`"),
    ("Tests", "`make test`"),
    ("Cold start", "`rstar2 sft`"),
    ("Training, the trainer's own module as engine", "`rstar2 train --config configs/one_gpu.toml`"),
    ("Training, vLLM in process, with sleep between steps", "`rstar2 train --config configs/one_gpu_vllm.toml`"),
    ("Training, vLLM servers", "`rstar2 train --config configs/vllm_servers.toml`"),
    ("Several accelerators", "`accelerate launch --config_file configs/accelerate/mi300x_1x8_fsdp2.yaml`"),
    ("A server killed during a run", "docs/rocm.md"),
)
_PROOF = ("part", "result", "figure", "value", "expected", "seconds")
_FIGURES = (
    ("seconds/rollout", "seconds of a step: rollout"),
    ("seconds/hand_over", "seconds of a step: weight sync"),
    ("seconds/train", "seconds of a step: training"),
    ("speed/generated_tokens_per_second", "tokens generated per second"),
    ("speed/train_tokens_per_second", "tokens trained per second"),
    ("speed/mfu", "share of the device's peak (MFU)"),
    ("rollout/tokens", "tokens per episode"),
    ("rollout/unavailable", "share of episodes lost to infrastructure"),
    ("mismatch/logp_difference", "difference between engine and trainer (mean of abs(log π - log μ), nats)"),
    ("policy/ratio", "mean probability ratio"),
)


def report(
    machine: MachineState | None = None,
    checked: Sequence[DoctorResult] = (),
    run: Run | None = None,
    proof: Sequence[tuple[str, ...]] = (),
) -> str:
    """Fill in the form docs/gpu-report.md, and return it as Markdown.

    Args:
        machine: The state of the machine; without it, the cells about the machine stay empty.
        checked: Results of the checks.
        run: A run on that machine, whose metrics fill the form.
        proof: Rows of the table of ``rstar2 doctor --prove``. Its columns are part, result, figure (name of a measured
            quantity), value, expected range and seconds.
    """
    parts = [
        _EMPTY_HEAD if machine is None else _HEAD,
        _table("The machine", ("", ""), _rows(_machine, machine)),
        _table("The software", ("", ""), _rows(_software, machine)),
        _table("Variables", ("variable", "value"), _variables(machine)),
        _table(
            "Checks",
            ("", "check", "finding"),
            [(result.level, result.name, result.line) for result in checked] or _open(3),
        ),
        _table("Proof: `rstar2 doctor --prove`", _PROOF, proof or _open(len(_PROOF))),
        _table("What was run", ("step", "command", "result", "seconds"), [(*step, OPEN, OPEN) for step in _STEPS]),
        _table("Figures of a run", ("", "median over the steps"), _figures(run)),
        _table("Learning", ("", "first", "last"), _learning(run)),
        "## Notes\n"
        f"Differences from docs/rocm.md, and fixes: {OPEN}\n\n"
        f"Peak memory of the accelerators (`rocm-smi --showmeminfo vram`): {OPEN}\n\n"
        f"Author, date, commit: {OPEN}\n",
        _STATE.format(OPEN if machine is None else json.dumps(asdict(machine), indent=1, ensure_ascii=False)),
    ]
    return "\n".join(parts)


def _machine(machine: MachineState) -> dict[str, str]:
    driver, system, folder = machine.driver, machine.system, machine.folder
    devices = [f"{device.name} ({device.arch}, {device.memory_bytes / 1e9:.0f} GB)" for device in driver.devices]
    shown = ", ".join(f"{devices.count(name)} x {name}" for name in dict.fromkeys(devices))
    return {
        "accelerators": shown or "none",
        "driver": f"{driver.vendor or 'none'} {driver.version}".strip(),
        "cores, memory": f"{system.cpus}, {system.memory_bytes / 1e9:.0f} GB, {system.numa_nodes} NUMA nodes",
        "system": f"{system.distribution}, kernel {system.kernel}{', in a container' if system.container else ''}",
        "shared memory": f"{machine.bounds.shm_bytes / 1e9:.0f} GB",
        "folder of runs": f"{folder.filesystem}, {folder.free_bytes / 1e9:.0f} GB free",
    }


def _software(machine: MachineState) -> dict[str, str]:
    torch, vllm = machine.torch, machine.vllm
    build = f"{torch.version}, {torch.build} build {torch.hip or torch.cuda}".strip()
    return {
        "ROCm": machine.driver.rocm or torch.hip or "none",
        "Python": f"{machine.system.python}, glibc {machine.system.glibc or 'none'}",
        "torch": build if torch.version else "none",
        "vLLM": f"{vllm.version}, {vllm.build} build" if vllm.version else "none",
        "packages": ", ".join(f"{name} {version}" for name, version in machine.packages.items()) or "none",
    }


def _rows(cells: Callable[[MachineState], dict[str, str]], machine: MachineState | None) -> list[tuple[str, str]]:
    """Return rows with the names and values that ``cells`` computes; without a machine, the values are empty."""
    return [(name, value if machine else OPEN) for name, value in cells(machine or MachineState()).items()]


def _variables(machine: MachineState | None) -> list[tuple[str, ...]]:
    if machine is None:
        return _open(2)
    return [(f"`{name}`", f"`{value}`") for name, value in machine.environment.items()] or [("none", "")]


def _figures(run: Run | None) -> list[tuple[str, str]]:
    lines = [] if run is None else [line for line in run.metrics() if line.get("step")]
    rows = []
    for name, words in _FIGURES:
        found = [float(line[name]) for line in lines if line.get(name) is not None]
        rows.append((f"{words} (`{name}`)", f"{statistics.median(found):.4g}" if found else OPEN))
    return [("steps", str(len(lines)) if lines else OPEN), *rows]


def _learning(run: Run | None) -> list[tuple[str, str, str]]:
    lines: list[Mapping[str, float]] = [] if run is None else list(run.metrics())
    rows = []
    for name in ("eval/pass_rate", "rollout/pass_rate", "rollout/tool_error_share_correct", "rollout/turns"):
        found = [float(line[name]) for line in lines if line.get(name) is not None]
        first, last = (f"{found[0]:.4g}", f"{found[-1]:.4g}") if found else (OPEN, OPEN)
        rows.append((f"`{name}`", first, last))
    return rows


def _open(columns: int) -> list[tuple[str, ...]]:
    return [(OPEN,) * columns]


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return f"## {title}\n" + "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


_HEAD = """# A run on a GPU

A form for runs on machines on which this project was not tested. `rstar2 doctor --report FILE` completes it as far as
possible, `--prove` adds measurements of the machine, and `--folder RUN` adds the metrics of a run; please fill in the
`…` cells, and submit the form as an issue of the repository, so that docs/rocm.md can state what was run. The last
section is the machine's state as JSON: if you save it as FILE, `rstar2 doctor --machine FILE` checks that state on any
other machine.
"""
_EMPTY_HEAD = _HEAD.replace("# A run on a GPU", "# Form for a run on a GPU\n\nNo run on a GPU has been reported yet.")
_STATE = """## State of the machine
```json
{}
```
"""
