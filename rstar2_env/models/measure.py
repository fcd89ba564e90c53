"""``measure_model``: measures a model's speed on this machine, in tokens per second: reading, generating, training."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.models.forward import cache_argument

_ROWS, _READ, _WRITTEN, _TRAINED = 16, 256, 12, 512


@dataclass(frozen=True, slots=True)
class ModelSpeed:
    """Measured speeds of a model in tokens per second, with the number of threads and the device.

    Attributes:
        reading: Prompt tokens per second, one prompt of 256 tokens at a time.
        writing: Generated tokens per second of a batch of 16 rows, summed over the rows; the model is called directly,
            without an inference engine.
        training: Tokens per second in a forward and backward pass of two rows of 256 tokens.
        threads: Number of threads.
        device: ``cuda`` or ``cpu``.
    """

    reading: float
    writing: float
    training: float
    threads: int
    device: str


def measure_model(folder: str | Path) -> ModelSpeed:
    """Load a model, and measure its speed in reading, generating and training, once each.

    Args:
        folder: Folder of a whole model.

    Raises:
        ConfigurationError: The model cannot be loaded.
        MissingExtraError: torch or transformers is not installed.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM, DynamicCache
    except ImportError as error:
        raise MissingExtraError("train", "Measuring a model") from error
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigurationError(f"The model {str(folder)!r} cannot be loaded: {error}") from error
    model.to(device)
    words = int(model.config.get_text_config().vocab_size)

    def ids(rows: int, length: int) -> Any:
        return torch.randint(words, (rows, length), generator=torch.Generator().manual_seed(0)).to(device)

    def seconds(work: Callable[[], None]) -> float:
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    def write(rows: int, steps: int) -> None:
        cache = {cache_argument(model): DynamicCache(config=model.config)}
        found = model(ids(rows, 8), use_cache=True, **cache)
        for _ in range(steps):
            found = model(found.logits[:, -1:].argmax(-1), use_cache=True, **cache)

    def train() -> None:
        batch = ids(_TRAINED // 256, 256)
        model(batch, labels=batch).loss.backward()
        model.zero_grad(set_to_none=True)

    with torch.no_grad():
        model(ids(1, 16))  # warm-up, since the first pass also allocates memory
        reading = _READ / seconds(lambda: model(ids(1, _READ)))
        writing = _ROWS * _WRITTEN / seconds(lambda: write(_ROWS, _WRITTEN))
    training = _TRAINED / seconds(train)
    return ModelSpeed(reading, writing, training, torch.get_num_threads(), device.type)
