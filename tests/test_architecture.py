"""Imports point downward, plugins stand apart, and nothing lies loose; each rule is seen to fail on a small tree."""

import re
import subprocess
import sys
import warnings

import pytest
from architecture import (
    FLOORS,
    MANY_LINES,
    PLUGINS,
    RULES,
    House,
    circles,
    hidden,
    long,
    loose,
    not_alone,
    plugins_not_apart,
    through_the_face,
    trl_elsewhere,
    upward,
)
from places import DOCS, ROOT, SUPPORT

import rstar2_env.testing

SETTINGS = """
[tool.setuptools]
packages = [{packages}]
"""


@pytest.fixture(scope="module")
def house():
    return House.read(ROOT)


@pytest.fixture
def small(tmp_path):
    """Builds a package of the files that are given as text, and applies a rule to it."""

    def build(rule, files, *, left_out=()):
        folders = {"rstar2_env"}
        for name, text in {"rstar2_env/__init__.py": "", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            folders.add(path.parent.relative_to(tmp_path).as_posix())
        names = [folder if folder.startswith("rstar2_env") else f"rstar2_env/{folder}" for folder in folders]
        listed = ", ".join(f'"{name.replace("/", ".")}"' for name in sorted(names) if name not in left_out)
        (tmp_path / "pyproject.toml").write_text(SETTINGS.format(packages=listed))
        return rule(House.read(tmp_path))

    return build


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(house, rule):
    assert rule(house) == []


def test_the_package_is_read_whole(house):
    files = {path for folder in ("rstar2_env", *PLUGINS) for path in (ROOT / folder).rglob("*.py")}
    assert {module.path for module in house.modules.values()} == files
    assert len(house.inner) > 1000


def test_every_floor_holds_packages_that_exist(house):
    assert {f"rstar2_env.{room}" for floor in FLOORS for room in floor} <= house.packages.keys()


class TestUpward:
    def test_an_import_from_a_floor_above_is_found_however_it_is_written(self, small):
        files = {
            "rstar2_env/env/tool_env.py": "",
            "rstar2_env/tools/a.py": "from rstar2_env.env.tool_env import ToolEnv",
            "rstar2_env/tools/b.py": "import rstar2_env.env.tool_env as t",
            "rstar2_env/tools/c.py": "from ..env import tool_env",
            "rstar2_env/tools/d.py": "def late():\n    from rstar2_env.env import tool_env",
            "rstar2_env/tools/e.py": "from typing import TYPE_CHECKING as T\nif T:\n    import rstar2_env.env.tool_env",
            "rstar2_env/env/fine.py": "from rstar2_env.tools import a",
        }
        broken = small(upward, files)
        assert [line.split(":")[0] for line in broken] == [f"rstar2_env/tools/{name}.py" for name in "abcde"]
        assert broken[3] == (
            "rstar2_env/tools/d.py:2: rstar2_env.tools.d imports rstar2_env.env.tool_env, which is no floor below it"
        )

    def test_packages_of_one_floor_do_not_import_each_other(self, small):
        files = {"rstar2_env/tools/a.py": "", "rstar2_env/problems/b.py": "from rstar2_env.tools.a import x"}
        assert len(small(upward, files)) == 1

    def test_a_new_package_needs_a_floor(self, small):
        assert small(upward, {"rstar2_env/attic/a.py": ""}) == [
            "rstar2_env.attic is on no floor: give it a place in FLOORS"
        ]


@pytest.mark.parametrize(
    "files",
    [
        {"agents/a.py": "", "rstar2_env/core/b.py": "from rstar2_env.agents import a"},
        {"agents/a.py": "", "trainers/b.py": "from rstar2_env.agents.a import A"},
        {"agents/a.py": "", "trainers/b.py": "from ..agents import a"},
        {"rstar2_env/cli/a.py": "", "trainers/b.py": "from rstar2_env.cli import a"},
    ],
)
def test_plugins_stand_apart(small, files):
    assert len(small(plugins_not_apart, files)) == 1


def test_plugins_import_the_ground_floor_and_their_own(small):
    files = {
        "agents/a.py": "from rstar2_env.core import b",
        "agents/c.py": "from .a import x",
        "rstar2_env/core/b.py": "",
    }
    assert small(plugins_not_apart, files) == []


@pytest.mark.parametrize("text", ["import rstar2_env", "from rstar2_env import ToolEnv", "from .. import ToolEnv"])
def test_nobody_inside_imports_the_face(small, text):
    assert len(small(through_the_face, {"rstar2_env/core/a.py": text})) == 1


@pytest.mark.parametrize("text", ["import numpy", "from rstar2_env.core import b", "from ...core import b"])
def test_the_programs_inside_the_sandbox_have_the_standard_library_alone(small, text):
    files = {"rstar2_env/core/b.py": "", "rstar2_env/sandbox/inside/a.py": f"import os\n{text}"}
    (line,) = small(not_alone, files)
    assert line.startswith("rstar2_env/sandbox/inside/a.py:2: ")


@pytest.mark.parametrize("text", ["from trl import GRPOConfig", "def late():\n    import trl.experimental"])
def test_trl_is_imported_in_its_backend_alone(small, text):
    assert len(small(trl_elsewhere, {"trainers/base.py": text})) == 1
    assert small(trl_elsewhere, {"trainers/base.py": "", "trainers/backends/trl/run/run.py": text}) == []


class TestCircles:
    def test_modules_that_import_each_other_are_found_behind_type_checking_too(self, small):
        late = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rstar2_env.core.a import A"
        files = {
            "rstar2_env/core/a.py": "from .b import B",
            "rstar2_env/core/b.py": "from .c import C",
            "rstar2_env/core/c.py": late,
            "rstar2_env/core/d.py": "from .a import A",
        }
        assert small(circles, files) == ["circle: rstar2_env.core.a, rstar2_env.core.b, rstar2_env.core.c"]

    def test_folders_of_one_folder_are_found_where_no_modules_are(self, small):
        files = {
            "rstar2_env/core/a.py": "from rstar2_env.env.b import B",
            "rstar2_env/env/b.py": "",
            "rstar2_env/env/c.py": "from rstar2_env.core.d import D",
            "rstar2_env/core/d.py": "",
        }
        folders = {"rstar2_env/core/__init__.py": "", "rstar2_env/env/__init__.py": ""}
        assert small(circles, {**files, **folders}) == ["circle: rstar2_env.core, rstar2_env.env"]


@pytest.mark.parametrize(
    "text",
    [
        "def verify(): ...",
        "verify = 3",
        "from .verify import verify",
        "from .other import thing as verify",
        "try:\n    class verify: ...\nexcept ImportError:\n    pass",
    ],
)
def test_no_name_of_a_package_hides_a_module(small, text):
    files = {"rstar2_env/core/__init__.py": text, "rstar2_env/core/verify.py": "", "rstar2_env/core/other.py": ""}
    (line,) = small(hidden, files)
    assert line.endswith("rstar2_env.core binds 'verify', which hides the module rstar2_env.core.verify")


def test_a_package_may_import_its_modules(small):
    text = "from . import verify\nfrom rstar2_env.core import verify\nfrom .verify import check"
    assert small(hidden, {"rstar2_env/core/__init__.py": text, "rstar2_env/core/verify.py": ""}) == []


def test_no_module_lies_loose_and_no_folder_is_left_out_of_the_distribution(small):
    files = {"rstar2_env/spare.py": "", "rstar2_env/core/a.py": "", "agents/search/b.py": "", "agents/c.py": ""}
    assert small(loose, files, left_out=["rstar2_env/core", "rstar2_env/agents/search"]) == [
        "agents/search is not among the packages of pyproject.toml",
        "rstar2_env/core is not among the packages of pyproject.toml",
        "spare.py lies loose in rstar2_env",
    ]


def test_long_files_are_found(small):
    files = {"rstar2_env/core/a.py": "\n" * MANY_LINES, "rstar2_env/core/b.py": "\n" * (MANY_LINES + 1)}
    assert small(long, files) == [f"rstar2_env/core/b.py has {MANY_LINES + 1} lines, more than {MANY_LINES}"]


def test_long_files_of_the_house_get_a_warning(house):
    for each in long(house):
        warnings.warn(each, stacklevel=1)


PAGE = (DOCS / "architecture.md").read_text()


def chapter(title):
    """The lists of files of a chapter of the page, in order."""
    text = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lists = re.split(r"^1\. ", text, flags=re.MULTILINE)[1:]
    return [re.findall(r"^(?:\d+\. )?`([a-z0-9_/]+\.py)`: ", each, flags=re.MULTILINE) for each in lists]


class TestThePage:
    def test_every_file_and_folder_that_it_names_exists(self):
        named = set(re.findall(r"`((?:rstar2_env|agents|envs_registry|trainers|tests)/[\w./]*)`", PAGE))
        assert len(named) > 60
        assert {name for name in named if not (ROOT / name).exists()} == set()

    @pytest.mark.parametrize("title", ["An action", "An episode", "A grade", "A sandboxed job"])
    def test_a_path_names_files_that_are_entered_in_that_order(self, title, tmp_path):
        command = [sys.executable, str(SUPPORT / "followed.py"), title.split()[-1], str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stderr
        path = done.stdout.split()
        named = chapter(title)[0]
        assert len(named) >= 5
        assert [name for name in path if name in named] == named, path

    def test_it_draws_the_floors_that_the_imports_keep(self):
        drawn = [
            re.split(r" {3,}", line)[0] for line in re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1].splitlines()
        ]
        floors = ["  ".join(floor) for floor in reversed(FLOORS)]
        assert drawn == ["rstar2_env", "  ".join(PLUGINS), *floors]

    def test_it_says_of_every_part_how_it_joins(self):
        table = PAGE.split("## What to touch")[1]
        groups = set(re.findall(r"\| `(rstar2_env\.[a-z_]+)` \|", table))
        files = [path for folder in ("rstar2_env", *PLUGINS) for path in (ROOT / folder).rglob("*.py")]
        written = {group for path in files for group in re.findall(r'"(rstar2_env\.[a-z_]+)"', path.read_text())}
        assert len(groups) > 8
        assert groups <= written
        for name in re.findall(r"`(register_\w+)\(", table):
            assert callable(getattr(rstar2_env, name))
        for name in re.findall(r"`rstar2_env\.testing\.(\w+)`", table):
            assert callable(getattr(rstar2_env.testing, name))
