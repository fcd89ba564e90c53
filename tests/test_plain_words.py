"""Clean folders stay free of the constructions that ``tools/plain_words.py`` finds.

``python tools/plain_words.py --counts rstar2_env trainers agents envs_registry docs`` prints the findings of the other
folders; add a folder without findings to ``CLEAN``.
"""

import sys

import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from plain_words import files, findings

CLEAN = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
    "docs/trainers",
    "docs/tutorials",
    "agents",
    "configs",
    "benchmarks",
    "docker",
    "envs_registry",
    "examples",
    "pipelines",
    "rstar2_env/cli",
    "rstar2_env/core",
    "rstar2_env/dialects",
    "rstar2_env/doctor",
    "rstar2_env/env",
    "rstar2_env/evaluation",
    "rstar2_env/problems",
    "rstar2_env/rewards",
    "rstar2_env/sandbox",
    "rstar2_env/search",
    "rstar2_env/tools",
    "rstar2_env/traces",
    "rstar2_env/verification",
    "rstar2_env/worlds",
    "rstar2_env/wrappers",
    "tools",
    "trainers/advantages",
    "trainers/demonstration",
    "trainers/export",
    "trainers/hooks",
    "trainers/launch",
    "trainers/losses",
    "trainers/options",
    "trainers/pipeline",
    "trainers/plan",
    "trainers/queue",
    "trainers/recipes",
    "trainers/record",
    "trainers/rollouts",
    "trainers/samplers",
    "trainers/selectors",
)


@pytest.mark.parametrize("folder", CLEAN)
def test_a_clean_folder_stays_clean(folder):
    found = [str(finding) for path in files([ROOT / folder]) for finding in findings(path)]
    assert not found, "\n".join(found)


def test_clean_folders_exist():
    assert not [folder for folder in CLEAN if not (ROOT / folder).exists()]
