"""``model_folder``: checks the name of a model, and converts a GGUF file to a folder that every library loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rstar2_env.core.model_name import check_model
from rstar2_env.models.gguf import converted, is_gguf


def model_folder(model: Any) -> Any:
    """Check a model's name, and return it in a form that transformers and vLLM load.

    Args:
        model: A folder, a name on the Hugging Face hub, a GGUF file, or a loaded model.

    Returns:
        The folder to which a GGUF file was converted; anything else is returned unchanged.

    Raises:
        ConfigurationError: There is no such model, or the GGUF file cannot be converted.
        MissingExtraError: A package that reads GGUF files is not installed.
    """
    check_model(model)
    return folder_of_gguf(model)


def folder_of_gguf(model: Any) -> Any:
    """Return the folder of a GGUF file's model, converting the file if needed; return any other model unchanged.

    Raises:
        ConfigurationError: The GGUF file cannot be converted.
        MissingExtraError: A package that reads GGUF files is not installed.
    """
    return str(converted(Path(model))) if is_gguf(model) else model
