"""Names that are loaded on first use: once, under their own name or another, and never by listing them."""

from __future__ import annotations

import importlib
import sys

import pytest

from rstar2_env import rollout
from rstar2_env.core.errors import MissingExtraError

FILES = {
    "__init__.py": """
from rstar2_env.core.lazy_names import lazy_names
here = 1
__getattr__, __dir__ = lazy_names(__name__, {"Thing": "inner", "other": "inner:Thing.size", "absent": "inner"})
""",
    "inner.py": """
class Thing:
    size = 7
""",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "has_lazy_names").mkdir()
    for name, text in FILES.items():
        (tmp_path / "has_lazy_names" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("has_lazy_names")
    for name in [name for name in sys.modules if name.startswith("has_lazy_names")]:
        del sys.modules[name]


def test_a_name_is_loaded_when_it_is_asked_for_and_then_kept(package):
    assert {"here", "Thing", "other"} <= set(dir(package))
    assert "has_lazy_names.inner" not in sys.modules
    assert package.other == 7
    assert vars(package)["other"] == 7
    assert package.Thing is sys.modules["has_lazy_names.inner"].Thing


def test_a_name_that_is_not_there_is_an_error_of_the_package(package):
    with pytest.raises(AttributeError, match="module 'has_lazy_names' has no attribute 'Thin'"):
        _ = package.Thin
    with pytest.raises(AttributeError, match="absent"):
        _ = package.absent


def test_a_name_of_the_rollout_package_names_the_extra_that_it_needs(monkeypatch):
    def missing(module):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"rstar2_env\.rollout needs the extra 'train'"):
        rollout.__getattr__("Player")
