"""A plugin that says which tests run in the same worker (``workers.py``), and in which order.

The tests of a file stay together, and so do all tests of what is started once a run (a vLLM server, a Docker engine, a
Ray cluster), whatever file they are in.
"""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path

import pytest

SERVED = {
    "vllm_server": "vllm",
    "vllm_engine": "vllm",
    "ray_nodes": "ray",
    "docker_options": "docker",
    "chromium": "chromium",
}
"""Fixtures that start something large, and the group of their tests."""
PARAMS = {"vllm": "vllm", "vllm-server": "vllm", "ray": "ray", "docker": "docker"}
"""The same for parameters of fixtures that ask for one of these by its name."""
HOMES = {"deadlines": "tests/rstar2_env/sandbox/", "train": "tests/trainers/"}
"""Where the tests with a marker are: ``passes.py`` looks for them there alone."""
DURATIONS = "durations.json"
"""Name of the file in which ``passes.py`` leaves the seconds of each file of tests."""
_ROOT = Path(__file__).resolve().parents[2]
RECORDED = _ROOT / "tests" / DURATIONS
"""The seconds of long files in the repository, for the first run in a clone; ``passes.py --record`` writes them."""
_MENTIONS_SERVED = re.compile("|".join([*(rf"\b{name}\b" for name in SERVED), *(f'"{name}"' for name in PARAMS)]))
"""What the text of a file has whose tests are served."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options with which a pass collects less."""
    parser.addoption("--without-lengthy", action="store_true", help="leave out the files that tests/lengthy.txt names")
    parser.addoption("--served-in", default="", metavar="FOLDER", help="of FOLDER, run only tests that are served")


def group_of(item: pytest.Item) -> str:
    """The group of a test: what it is served by, its provider, itself when it is ``alone``, or its file."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    served = [group for fixture, group in SERVED.items() if fixture in getattr(item, "fixturenames", ())]
    served += [PARAMS[value] for value in params.values() if isinstance(value, str) and value in PARAMS]
    if served:
        return served[0]
    if "provider" in getattr(item, "fixturenames", ()) and isinstance(params.get("provider"), str):
        return str(params["provider"])
    return item.nodeid if item.get_closest_marker("alone") else item.nodeid.partition("::")[0]


def _seconds_in(file: Path) -> dict[str, float]:
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


@functools.cache
def _lengthy() -> tuple[str, ...]:
    lines = (_ROOT / "tests" / "lengthy.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


def is_lengthy(path: Path) -> bool:
    """Whether ``tests/lengthy.txt`` names a file of tests, or a folder that it is in."""
    name = path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else ""
    return any(name == line or (line.endswith("/") and name.startswith(line)) for line in _lengthy())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file of which a pass runs nothing: every worker would pay for it."""
    if not re.fullmatch(r"test_\w+\.py", collection_path.name):
        return None
    if config.getoption("without_lengthy") and is_lengthy(collection_path):
        named = [Path(word.partition("::")[0]).resolve() for word in config.args]
        return None if collection_path in named else True
    text = collection_path.read_text(encoding="utf-8")
    served_in = config.getoption("served_in")
    if served_in and collection_path.is_relative_to(_ROOT / served_in) and not _MENTIONS_SERVED.search(text):
        return True
    marks = re.findall(r"pytest\.mark\.(\w+)", text.partition("\npytestmark = ")[2].partition("\n\n")[0])
    return True if unwanted_marks(config.getoption("markexpr")) & set(marks) else None


def unwanted_marks(expression: str) -> set[str]:
    """The markers of which an expression selects nothing: those that it negates, if it asks for no other."""
    words = [word.strip() for word in re.sub(r"not \([^()]*\)", "", expression).split(" and ") if word.strip()]
    unwanted = {word.removeprefix("not ") for word in words if re.fullmatch(r"not \w+", word)}
    return unwanted if len(unwanted) == len(words) else set()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is served, and what is slow because it is a proof; refuse a marker where nobody looks for it."""
    if group_of(item) in SERVED.values():
        item.add_marker(pytest.mark.served)
        if item.nodeid.startswith(HOMES["train"]) and not _MENTIONS_SERVED.search(
            item.path.read_text(encoding="utf-8")
        ):
            raise pytest.UsageError(f"{item.nodeid} is served, and its file does not name the fixture that serves it.")
    if item.get_closest_marker("proof"):
        item.add_marker(pytest.mark.slow)
    for marker, folder in HOMES.items():
        if item.get_closest_marker(marker) and not item.nodeid.startswith(folder):
            raise pytest.UsageError(f"{item.nodeid} is marked {marker!r}; such tests are found in {folder} alone.")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left with it at the end."""
    if served_in := config.getoption("served_in"):
        left_out = [
            item
            for item in items
            if item.path.is_relative_to(_ROOT / served_in) and not item.get_closest_marker("served")
        ]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    results = Path(os.environ.get("RSTAR2_TEST_RESULTS", _ROOT / "build" / "tests"))
    seconds = {**_seconds_in(RECORDED), **_seconds_in(results / DURATIONS)}

    def place(item: pytest.Item) -> tuple[bool, float]:
        # Tests that share a server keep their order: some leave other weights in it, and those come last.
        early = bool(item.get_closest_marker("served") or item.get_closest_marker("alone"))
        return not early, 0.0 if early else -seconds.get(item.nodeid.partition("::")[0], 0.0)

    items.sort(key=place)
