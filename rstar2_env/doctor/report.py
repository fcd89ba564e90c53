"""``report``: what a machine is and how a run went on it, as a form that is partly filled in.

The empty form is docs/gpu-report.md. Covered: the machine, its software, the checks, and the figures of a run's folder.
Not covered: what only the person who was there can tell; those cells stay open.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence

from rstar2_env.core.run_folder import Run
from rstar2_env.doctor.finding import Checked
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.rocm_versions import VLLM_IMAGE

OPEN = "…"
"""A cell that is still to be filled in."""

_STEPS = (
    ("The image, or the installation", f"`docker build -f docker/rocm/Dockerfile .` on `{VLLM_IMAGE}`"),
    ("Checks", "`rstar2 doctor`"),
    ("Demonstration on the accelerator", "`make train`"),
    ("Tests", "`make test`"),
    ("Cold start", "`rstar2 sft`"),
    ("Training, the trainer's own module as engine", "`rstar2 train --config configs/one_gpu.toml`"),
    ("Training, vLLM in process, asleep between steps", "`rstar2 train --config configs/one_gpu_vllm.toml`"),
    ("Training, vLLM servers", "`rstar2 train --config configs/vllm_servers.toml`"),
    ("Several accelerators", "`accelerate launch --config_file configs/accelerate/mi300x_1x8_fsdp2.yaml`"),
    ("A server killed during a run", "docs/rocm.md"),
)
_FIGURES = (
    ("seconds/rollout", "seconds of a step: rollout"),
    ("seconds/hand_over", "seconds of a step: weights to the engine"),
    ("seconds/train", "seconds of a step: training"),
    ("speed/generated_tokens_per_second", "tokens generated a second"),
    ("speed/train_tokens_per_second", "tokens trained on a second"),
    ("speed/mfu", "share of the device's peak (MFU)"),
    ("rollout/tokens", "tokens of an episode"),
    ("rollout/unavailable", "share of episodes lost to infrastructure"),
    ("mismatch/logp_difference", "distance of engine and trainer (mean of abs(log π - log μ), nats)"),
    ("policy/ratio", "mean probability ratio"),
)


def report(machine: MachineState | None = None, checked: Sequence[Checked] = (), run: Run | None = None) -> str:
    """The form, as Markdown.

    Args:
        machine: The state of the machine; without it, its cells stay open.
        checked: What the checks concluded.
        run: A run on that machine, whose figures are filled in.
    """
    parts = [
        _EMPTY_HEAD if machine is None else _HEAD,
        _table("The machine", ("", ""), _machine(machine)),
        _table("The software", ("", ""), _software(machine)),
        _table("Variables", ("variable", "value"), _variables(machine)),
        _table("Checks", ("", "check", "finding"), [(one.level, one.name, one.line) for one in checked] or _open(3)),
        _table("What was run", ("step", "command", "result", "seconds"), [(*step, OPEN, OPEN) for step in _STEPS]),
        _table("Figures of a run", ("", "median over the steps"), _figures(run)),
        _table("Learning", ("", "first", "last"), _learning(run)),
        "## In words\n"
        f"What did not go as docs/rocm.md says, and what helped: {OPEN}\n\n"
        f"Memory of the accelerators at most (`rocm-smi --showmeminfo vram`): {OPEN}\n\n"
        f"Who ran it, when, from which commit: {OPEN}\n",
        _STATE.format(OPEN if machine is None else json.dumps(machine.record(), indent=1, ensure_ascii=False)),
    ]
    return "\n".join(parts)


def _machine(machine: MachineState | None) -> list[tuple[str, str]]:
    names = ("accelerators", "driver", "cores, memory", "system", "shared memory", "folder of runs")
    if machine is None:
        return [(name, OPEN) for name in names]
    driver, system, folder = machine.driver, machine.system, machine.folder
    devices = [f"{one.name} ({one.arch}, {one.memory_bytes / 1e9:.0f} GB)" for one in driver.devices]
    shown = ", ".join(f"{devices.count(name)} x {name}" for name in dict.fromkeys(devices))
    values = (
        shown or "none",
        f"{driver.vendor or 'none'} {driver.version}".strip(),
        f"{system.cpus}, {system.memory_bytes / 1e9:.0f} GB, {system.numa_nodes} NUMA nodes",
        f"{system.distribution}, kernel {system.kernel}{', in a container' if system.container else ''}",
        f"{machine.bounds.shm_bytes / 1e9:.0f} GB",
        f"{folder.filesystem}, {folder.free_bytes / 1e9:.0f} GB free",
    )
    return list(zip(names, values, strict=True))


def _software(machine: MachineState | None) -> list[tuple[str, str]]:
    if machine is None:
        return [(name, OPEN) for name in ("ROCm", "Python", "torch", "vLLM", "packages")]
    torch, vllm = machine.torch, machine.vllm
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    return [
        ("ROCm", machine.driver.rocm or torch.hip or "none"),
        ("Python", f"{machine.system.python}, glibc {machine.system.glibc or 'none'}"),
        (
            "torch",
            f"{torch.version}, {torch.build} build {torch.hip or torch.cuda}".strip() if torch.version else "none",
        ),
        ("vLLM", f"{vllm.version}, {vllm.build} build" if vllm.version else "none"),
        ("packages", packages or "none"),
    ]


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

The form for the first runs on machines that this project has not seen. `rstar2 doctor --report FILE` fills in what it
can, and with `--folder RUN` the figures of that run; the cells with … are for the person who was there. Send it as an
issue of the repository, so that docs/rocm.md can say what was run, and not only what was read. The last part is the
state of the machine: `rstar2 doctor --machine FILE` checks it anywhere.
"""
_EMPTY_HEAD = _HEAD.replace("# A run on a GPU", "# Form for a run on a GPU\n\nNo run on a GPU has been reported yet.")
_STATE = """## State of the machine
```json
{}
```
"""
