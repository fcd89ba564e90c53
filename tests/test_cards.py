"""The cards of models and data say what the package contains."""

from __future__ import annotations

import re
import subprocess

import pytest
from places import DOCS, ROOT

from rstar2_env.models.known import KNOWN_MODELS
from rstar2_env.problems.catalog import NAMED_SETS
from rstar2_env.problems.families import FAMILIES

PAGE = (DOCS / "cards.md").read_text("utf-8")
WEIGHTS = {".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt", ".onnx", ".npz", ".pkl"}


def test_every_public_data_set_has_its_address_and_its_licence() -> None:
    rows = re.findall(r"^\| `([\w.-]+)` \| (\S+/\S+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(name, one.hub, one.licence) for name, one in NAMED_SETS.items()]


@pytest.mark.parametrize("name", sorted(KNOWN_MODELS))
def test_a_model_that_is_fetched_has_its_licence(name: str) -> None:
    model = KNOWN_MODELS[name]
    (row,) = [line for line in PAGE.splitlines() if f"`rstar2 model get {name}`" in line]
    assert model.title in row
    assert model.license in row
    assert f"{model.wheel_bytes / 1e6:.0f} MB" in row


def test_every_family_of_problems_is_on_the_data_card() -> None:
    def is_of_the_package(name: str) -> bool:  # other tests register families of their own
        family = FAMILIES.get(name)
        return (getattr(family, "__self__", family).__module__ or "").startswith("rstar2_env.")

    families = list(filter(is_of_the_package, FAMILIES.names()))
    assert len(families) >= 10
    assert [name for name in families if f"`{name}`" not in PAGE] == []


def test_every_table_of_the_package_is_on_the_data_card() -> None:
    tables = [path.name for path in (ROOT / "rstar2_env" / "verification" / "read").glob("*.txt")]
    assert len(tables) > 3
    assert [name for name in (*tables, "exploits.json") if name not in PAGE] == []


def test_the_repository_contains_no_weights() -> None:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = listed.stdout.splitlines()
    assert len(names) > 1000
    assert [name for name in names if any(name.endswith(suffix) for suffix in WEIGHTS)] == []
