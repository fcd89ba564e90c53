"""Faults in model files: the exceptions that transformers raises for them, and adapters that name code to import.

Not covered: loading (``pretrained``, ``trainers.backends.trl.model``).
"""

from __future__ import annotations

from pickle import UnpicklingError

from safetensors import SafetensorError

from rstar2_env.core.errors import ConfigurationError

_UNEXPLAINED = (KeyError, TypeError, AttributeError, ArithmeticError)
LOAD_ERRORS = (OSError, ValueError, ImportError, UnpicklingError, SafetensorError, *_UNEXPLAINED)
"""Exceptions that transformers and peft raise if a model's file is missing, or holds an unexpected value."""


def load_failure(error: BaseException) -> str:
    """Return the text of an exception, preceded by its class if the text alone explains little, as for ``KeyError``."""
    return f"{type(error).__name__}: {error}" if isinstance(error, _UNEXPLAINED) else str(error)


def check_adapter(name: str, config: object) -> None:
    """Check that the configuration of an adapter names no module to import.

    Args:
        name: Folder or hub name of the adapter.
        config: The adapter's ``peft.PeftConfig``.

    Raises:
        ConfigurationError: The configuration is for Megatron: peft would import a module that the file names.
    """
    if getattr(config, "megatron_config", None):
        raise ConfigurationError(
            f"The LoRA adapter {name!r} has a megatron_config in its adapter_config.json, so PEFT would import "
            "the Python module that the key megatron_core of this file names. This is not supported: remove "
            "megatron_config from the file.",
            option="model",
        )
