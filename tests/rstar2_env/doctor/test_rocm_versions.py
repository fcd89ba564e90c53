"""All files agree with the versions of ROCm, torch and vLLM in one module."""

from __future__ import annotations

import re

import pytest
from places import DOCS, ROOT

from rstar2_env.core.version import at_least
from rstar2_env.doctor import rocm_versions as versions

FILES = [
    *ROOT.glob("*.md"),
    *DOCS.glob("**/*.md"),
    *(ROOT / "docker").rglob("Dockerfile"),
    *(ROOT / "configs").rglob("*.*"),
    ROOT / "Makefile",
    ROOT / "compose.yaml",
    ROOT / "pyproject.toml",
]


def named(pattern: str) -> set[tuple[str, str]]:
    """Matches of the group of a pattern in every file, with the file."""
    return {
        (path.relative_to(ROOT).as_posix(), found) for path in FILES for found in re.findall(pattern, path.read_text())
    }


@pytest.mark.parametrize(
    ("pattern", "version", "files"),
    [
        (
            r"download\.pytorch\.org/whl/rocm([0-9.]*\d)",
            versions.ROCM_INDEX,
            {"Makefile", "docs/rocm.md"},
        ),
        (r"vllm-openai-rocm:v([0-9.]*\d)", versions.VLLM, {"docker/rocm/Dockerfile", "compose.yaml", "docs/rocm.md"}),
        (r"torch==([0-9.]*\d)", versions.TORCH, {"Makefile", "docker/cpu/Dockerfile", "docs/rocm.md"}),
        (r"\"vllm>=([0-9.]*\d),", versions.VLLM_LEAST, {"pyproject.toml"}),
        (r"vllm(?:-cpu)?>=[0-9.]+,<([0-9.]*\d)", versions.VLLM_BELOW, {"pyproject.toml", "Makefile"}),
    ],
)
def test_every_file_names_the_same_version(pattern: str, version: str, files: set[str]) -> None:
    found = named(pattern)
    assert {name for _, name in found} == {version}
    assert files <= {file for file, _ in found}


def test_versions_are_compared_by_their_numbers() -> None:
    assert at_least("7.2.53211", "7.0")
    assert at_least("0.31.0+rocm721", "0.22")
    assert at_least("10.0", "7.13")
    assert not at_least("6.4.1", "7.0")
    assert not at_least("", "7.0")
    assert not at_least("unknown", "7.0")
