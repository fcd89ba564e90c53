"""Choose the precision and the number of threads for training on a CPU, by a short benchmark on this machine.

On some processors a matrix product in bfloat16 takes half the time of one in float32; on other processors, which also
have bfloat16 instructions, it takes twice the time. On a quiet machine two threads take half the time of one thread; if
another program uses one of the cores, two threads take several times as long, since each operation waits for the slower
thread. Therefore precisions and numbers of threads are measured, on matrix products and attention of the size of a
small pretrained model. A model with at most ``NARROW`` units per layer uses torch's default number of threads and
float32, since synchronizing threads takes longer than its operations.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoConfig, PreTrainedModel, TrainerCallback

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.progress import say

from ...options.config import DTYPES, ModelOptions
from ...plan.architecture import sizes_in
from ...plan.training_memory import CPU_PASS_BYTES, Training, pass_tokens
from ...ranks import Ranks
from .adapters import adapter_in, base_of
from .model import dtype_of, on_accelerator

NARROW = 256
"""Hidden size up to which a model trains in float32 with torch's default number of threads, without a measurement."""
GAIN = 1.1
"""Minimum speed-up at which more threads, or bfloat16, are chosen."""
AGAIN_S = 30.0
"""Seconds between two measurements of the best number of threads while training runs."""
_WIDTH_MULTIPLE = 32
_MEASURE_S = 0.06
_QUOTA = Path("/sys/fs/cgroup/cpu.max")

RoundSeconds = Callable[[int, torch.dtype], float]
"""Function that returns the seconds one benchmark round takes with the given number of threads and precision."""


@dataclass(frozen=True, slots=True)
class CpuChoice:
    """Number of threads and precision of training on a CPU.

    Attributes:
        threads: Number of torch's threads.
        precision: ``float32`` or ``bfloat16``.
        seconds: Seconds of one round of the benchmark, by number of threads; empty if nothing was measured.
        watched: Whether the number of threads may change during the run, because neither an option nor
            ``OMP_NUM_THREADS`` sets it.
    """

    threads: int
    precision: str
    seconds: Mapping[int, float]
    watched: bool = False

    def record(self) -> dict[str, Any]:
        """Return ``threads``, ``precision`` and ``rounds_per_second`` (by number of threads), as JSON values."""
        rates = {str(threads): round(1 / seconds, 1) for threads, seconds in self.seconds.items()}
        return {"threads": self.threads, "precision": self.precision, "rounds_per_second": rates}

    @property
    def line(self) -> str:
        """The choice as one line of text, for the console."""
        return f"Training computes in {self.precision} with {_threads(self.threads)}.{stall(self.seconds)}"


def usable_cpus() -> int:
    """Number of CPUs that this process may use: its CPU set, limited by the quota of its cgroup."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text().split()
        return min(cpus, max(1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # another system, or no limit
        return cpus


def choose(options: ModelOptions, threads: int | None, *, precision: str | None = None) -> CpuChoice | None:
    """Choose threads and precision, and set torch's threads; measuring takes less than a second.

    Args:
        options: Options of the policy; a ``dtype`` other than ``auto`` is kept.
        threads: Number of threads that an option sets; ``None`` if none does.
        precision: The precision of the run that is resumed; ``None`` for a new run.

    Returns:
        The choice; ``None`` on an accelerator.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    if on_accelerator():
        return None
    fixed = threads is not None or "OMP_NUM_THREADS" in os.environ
    given = precision if options.dtype == "auto" else options.dtype
    if hidden_size(options) <= NARROW:
        return CpuChoice(torch.get_num_threads(), given or "float32", {})
    seconds: dict[int, float] = {}
    if not fixed:
        count, seconds = choose_threads(usable_cpus(), round_seconds)
        torch.set_num_threads(count)
    if given is None:
        given = choose_precision(torch.get_num_threads(), round_seconds)
    return CpuChoice(torch.get_num_threads(), given, seconds, watched=not fixed)


def chosen_together(
    policy: ModelOptions, threads: int | None, ranks: Ranks, *, earlier: str | None = None
) -> CpuChoice | None:
    """Choose threads and precision as ``choose`` does, but use the first process's precision in every process.

    Args:
        policy: Options of the policy; the measured precision replaces ``dtype="auto"``.
        threads: Number of threads that an option sets; ``None`` if none does.
        ranks: The processes; all call it together.
        earlier: The precision of the run that is resumed; ``None`` for a new run.
    """
    choice = choose(policy, threads, precision=earlier)
    precision = ranks.gather(None if choice is None else choice.precision)[0]
    if choice is None or precision is None:
        return None
    if policy.dtype == "auto" and precision != "float32":
        policy.dtype = precision  # without a measurement, "auto" means float32 on a CPU
    return replace(choice, precision=precision)


def recorded_precision(file: Path, group: str, key: str) -> str:
    """Return the precision that a CPU run recorded in a JSON file at ``[group][key]``; ``float32`` if there is none."""
    try:
        found = json.loads(file.read_text("utf-8")).get(group, {}).get(key)
    except (OSError, ValueError):
        return "float32"
    return found if found in DTYPES and found != "auto" else "float32"


def choose_threads(most: int, measure: RoundSeconds) -> tuple[int, dict[int, float]]:
    """Return the smallest number of threads with nearly the best speed, and the seconds of a round for each number.

    Args:
        most: Largest number of threads.
        measure: See ``RoundSeconds``.
    """
    counts = sorted({min(1 << power, most) for power in range(most.bit_length() + 1)})
    seconds = {count: measure(count, torch.float32) for count in counts}
    best = min(seconds.values())
    return next(count for count in counts if seconds[count] <= GAIN * best), seconds


def choose_precision(threads: int, measure: RoundSeconds) -> str:
    """Return ``bfloat16`` if torch has native instructions for it and they are faster, else ``float32``."""
    if not native_bfloat16():
        return "float32"
    faster = GAIN * measure(threads, torch.bfloat16) < measure(threads, torch.float32)
    return "bfloat16" if faster else "float32"


def native_bfloat16() -> bool:
    """Whether this processor has instructions with which torch multiplies in bfloat16."""
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return bool(supported is not None and supported())


def round_seconds(threads: int, dtype: torch.dtype) -> float:
    """Return the mean seconds of a round of matrix products and attention.

    The result is the mean and not the minimum, because another program may use a core for milliseconds at a time, and
    training waits for that program too.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        hidden, up, down = (torch.ones(shape, dtype=dtype) for shape in ((256, 576), (576, 1536), (1536, 576)))
        heads = torch.ones(1, 9, 256, 64, dtype=dtype)
        with torch.no_grad():
            _round(hidden, up, down, heads)
            began, count = time.perf_counter(), 0
            while (spent := time.perf_counter() - began) < _MEASURE_S or count < 3:
                _round(hidden, up, down, heads)
                count += 1
    finally:
        torch.set_num_threads(before)
    return spent / count


def _round(hidden: torch.Tensor, up: torch.Tensor, down: torch.Tensor, heads: torch.Tensor) -> None:
    (hidden @ up) @ down
    scaled_dot_product_attention(heads, heads, heads, is_causal=True)


def stall(seconds: Mapping[int, float]) -> str:
    """Return a warning if all threads together are slower than one thread; otherwise an empty string.

    Args:
        seconds: Seconds of one round of the benchmark, by number of threads.
    """
    most = max(seconds, default=1)
    if most == 1 or seconds[most] <= GAIN * seconds[1]:
        return ""
    share = seconds[1] / seconds[most]
    return (
        f" Now, {_threads(most)} compute only {share:.2f} times as fast as 1 thread, because other "
        "programs use the processor: stop these programs, or let the run choose the number of threads."
    )


def hidden_size(options: ModelOptions) -> int:
    """Return the hidden size of the policy; 0 if its configuration cannot be read."""
    source = options.path
    try:
        if isinstance(source, PreTrainedModel | PeftModel):
            config = base_of(source).config
        else:
            name, revision = os.fspath(source), options.revision
            found = adapter_in(name, revision)
            if found is not None:
                name, revision = str(found.base_model_name_or_path), found.revision
            config = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=options.trust_remote_code)
        return int(getattr(config.get_text_config(), "hidden_size", 0))
    except (OSError, ValueError, ImportError, ConfigurationError):
        return 0  # loading the model reports the error


def most_tokens(policy: torch.nn.Module, options: ModelOptions, limit: int = CPU_PASS_BYTES) -> int | None:
    """Return the number of tokens whose activations in one pass on a CPU just fit into a limit.

    Args:
        policy: The policy.
        options: Its options.
        limit: Bytes of the activations.

    Returns:
        The number of tokens; ``None`` on an accelerator, and for an architecture whose sizes are not known.
    """
    if on_accelerator():
        return None
    try:
        sizes = sizes_in(base_of(policy).config.to_dict(), "the policy", where="the policy's configuration")
    except ConfigurationError:
        return None
    low = dtype_of(options) is not torch.float32
    recompute = bool(options.gradient_checkpointing)
    return pass_tokens(sizes, Training(1, bfloat16=low, recompute=recompute, lora_rank=options.lora_rank), limit)


def width_multiple(options: ModelOptions) -> int | None:
    """Return the number of which every pass's padded width must be a multiple; ``None`` if any width is allowed.

    On a CPU, oneDNN computes matrix products in low precision. It compiles a kernel for each new shape, and keeps a
    thousand kernels, of about a megabyte each for SmolLM2. If widths repeat, fewer kernels are compiled and kept.

    Args:
        options: The policy's options.
    """
    return None if on_accelerator() or dtype_of(options) is torch.float32 else _WIDTH_MULTIPLE


class ThreadWatch(TrainerCallback):
    """Measures different numbers of threads again during training, and uses another number if it is faster.

    Args:
        most: Largest number of threads.
        measure: See ``RoundSeconds``.
        clock: Returns the time in seconds.
        visible: Whether to print a line at each change; ``True`` in the first process only.
    """

    def __init__(
        self,
        most: int,
        measure: RoundSeconds = round_seconds,
        clock: Callable[[], float] = time.monotonic,
        *,
        visible: bool = True,
    ) -> None:
        self._most, self._measure, self._clock, self._visible = most, measure, clock, visible
        self._at = clock()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure again if ``AGAIN_S`` seconds have passed since the last measurement."""
        if self._clock() - self._at < AGAIN_S:
            return
        before = torch.get_num_threads()
        count, seconds = choose_threads(self._most, self._measure)
        self._at = self._clock()
        if count != before and GAIN * seconds[count] < seconds.get(before, math.inf):
            torch.set_num_threads(count)
            if self._visible and state.is_world_process_zero:
                say(f"Training continues with {_threads(count)} instead of {before}.{stall(seconds)}")


def watches(choice: CpuChoice | None, *, visible: bool) -> Sequence[TrainerCallback]:
    """Return a list with a ``ThreadWatch`` if the number of threads may change during the run; else an empty list."""
    most = usable_cpus()
    return [ThreadWatch(most, visible=visible)] if choice is not None and choice.watched and most > 1 else []


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"
