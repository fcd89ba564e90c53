"""One's own code stands where a name does: a module of the current folder, a file, the only part in it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_class_with

AGENT = "class {name}:\n    def reset(self): ...\n    def act(self): return {name!r}\n"


@pytest.fixture
def registry():
    made = Registry("agent", shape=Shape(is_class_with("reset", "act"), "a class with reset and act"))
    made.register("ours", object)
    return made


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An own current folder; ``sys.path`` and ``sys.modules`` are as they were afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_file_and_a_module_of_the_current_folder_give_the_same_class(registry, folder):
    (folder / "own_agent_a.py").write_text(AGENT.format(name="Mine"))
    mine = registry.get("own_agent_a:Mine")
    assert mine().act() == "Mine"
    assert registry.get("./own_agent_a.py:Mine") is registry.get(str(folder / "own_agent_a.py")) is mine


def test_a_file_imports_what_lies_beside_it(registry, folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "own_helper_b.py").write_text("WORD = 'helped'\n")
    (folder / "deep" / "own_agent_b.py").write_text(
        "from own_helper_b import WORD\n" + AGENT.format(name="Mine").replace("'Mine'", "WORD")
    )
    assert registry.get("deep/own_agent_b.py")().act() == "helped"


def test_a_file_with_the_name_of_another_module_hides_nothing_and_works(registry, folder):
    (folder / "json.py").write_text(AGENT.format(name="Mine"))
    mine = registry.get("./json.py")
    assert mine().act() == "Mine"
    assert registry.get("./json.py:Mine") is mine
    assert hasattr(sys.modules["json"], "dumps")
    assert pickle.loads(pickle.dumps(mine)) is mine


def test_another_process_can_import_it_again(registry, folder):
    (folder / "own_agent_c.py").write_text(AGENT.format(name="Mine"))
    pickled = pickle.dumps(registry.get("./own_agent_c.py"))
    code = f"import sys, pickle; sys.path = {sys.path!r}; print(pickle.loads({pickled!r})().act())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd="/", env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout == "Mine\n"


def test_what_a_file_registers_is_found_by_its_name_and_is_one_with_its_class(registry, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "own_registry", type(sys)("own_registry"))
    sys.modules["own_registry"].AGENTS = registry
    source = "from own_registry import AGENTS\n" + AGENT.format(name="Mine") + "AGENTS.register('mine', Mine)\n"
    (folder / "own_agent_d.py").write_text(source)
    mine = registry.get("./own_agent_d.py")
    assert registry.get("mine") is registry.get("./own_agent_d.py:mine") is mine


class TestMistakes:
    def test_several_candidates_are_listed(self, registry, folder):
        (folder / "own_two.py").write_text(AGENT.format(name="One") + AGENT.format(name="Two"))
        with pytest.raises(ConfigurationError, match=r"2 objects .* agent \(One, Two\).*own_two.py:One"):
            registry.get("./own_two.py")

    def test_a_file_without_a_candidate_says_what_one_looks_like(self, registry, folder):
        # What a file imports is not what it defines.
        (folder / "own_none.py").write_text("from json import JSONDecoder\nclass Half:\n    def act(self): ...\n")
        with pytest.raises(ConfigurationError, match="holds no agent: expected a class with reset and act"):
            registry.get("./own_none.py")

    @pytest.mark.parametrize("written", ["./own_near.py:Fortytow", "own_near:Fortytow"])
    def test_a_wrong_name_suggests_the_nearest(self, registry, folder, written):
        (folder / "own_near.py").write_text(AGENT.format(name="Fortytwo"))
        with pytest.raises(ConfigurationError, match=r"no agent named 'Fortytow'\. Did you mean 'Fortytwo'"):
            registry.get(written)

    def test_what_cannot_be_called_is_refused(self, registry, folder):
        (folder / "own_value.py").write_text("SEVEN = 7\n")
        with pytest.raises(ConfigurationError, match="own_value:SEVEN is int, which is not valid as agent"):
            registry.get("own_value:SEVEN")

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("import os\n\n1/0\n", "line 3: ZeroDivisionError: division by zero"),
            ("x = (\n", "line 1: '\\(' was never closed"),
            ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
            ("import json\njson.loads('{')\n", "line 2: JSONDecodeError"),
            (
                "import no_such_module_of_mine\n",
                "line 1: ModuleNotFoundError: No module named 'no_such_module_of_mine'",
            ),
        ],
    )
    @pytest.mark.parametrize("form", ["./{}.py:X", "{}:X"])
    def test_code_that_fails_is_named_with_file_and_line(self, registry, folder, source, said, form):
        name = f"own_broken_{abs(hash((source, form)))}"
        (folder / f"{name}.py").write_text(source)
        for _ in range(2):
            with pytest.raises(ConfigurationError, match=rf"cannot be imported: .*{name}.py, {said}"):
                registry.get(form.format(name))

    def test_a_file_and_a_module_that_are_not_there_are_named(self, registry, folder):
        with pytest.raises(ConfigurationError, match=r"absent.py does not exist"):
            registry.get("./absent.py:X")
        with pytest.raises(ConfigurationError, match="no module 'no_such_module_here', neither in the current folder"):
            registry.get("no_such_module_here.deep:X")
