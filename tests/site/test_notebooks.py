"""Every tutorial runs from its first cell to its last, with small settings, and is stored without what it printed."""

import os
import re
import sys
import tomllib
from pathlib import Path

import last_full
import nbformat
import pytest
from nbclient import NotebookClient
from places import DOCS, ROOT

RAN = ROOT / "build" / "tutorials"
"""Where copies go with what their cells printed: the site shows it (``tools/docs_site/notebooks.py``)."""
TUTORIALS = sorted((DOCS / "tutorials").glob("*.ipynb"))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path, tmp_path, monkeypatch):
    if commit := last_full.unchanged_since(last_full.NOTEBOOKS, last_full.notebook_inputs()):
        pytest.skip(f"the inputs of the tutorials are those of commit {commit[:12]}, where they passed in full")
    monkeypatch.setenv("RSTAR2_TUTORIAL", "small")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name, value in {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "110"}.items():  # for commands of the shell
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": tmp_path}}
    NotebookClient(notebook, timeout=800, startup_timeout=300, kernel_name="python3", resources=where).execute()
    # A command of the shell that fails is no error of its cell.
    said = "".join("".join(out.get("text", "")) for cell in notebook.cells for out in cell.get("outputs", ()))
    assert not re.search(r"^(Error:|Traceback)", said, re.MULTILINE), said
    RAN.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, RAN / path.name)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_stored_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 3
    assert [cell.outputs or cell.execution_count for cell in code if cell.outputs or cell.execution_count] == []


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_installs_the_package_where_it_is_missing(path):
    install = "".join(nbformat.read(path, as_version=4).cells[1].source)
    named = re.fullmatch(
        r'import importlib\.util\n\nif not importlib\.util\.find_spec\("rstar2_env"\):\n'
        r'    %pip install --quiet "(?:rstar2-env|\.\./\.\.)(?:\[([\w,]+)\])?"',
        install,
    )
    assert named
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set((named[1] or "").split(",")) - {""} <= extras.keys()


def test_there_is_a_tutorial_for_each_way_of_taking_part():
    assert " ".join(path.stem for path in TUTORIALS) == "diagnose faults gsm8k own_environment own_part pretrained"
