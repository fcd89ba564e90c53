"""The public face: its names are where it says, load when they are first used, and hide nothing."""

import ast
import pkgutil
import subprocess
import sys
from dataclasses import dataclass

import gymnasium as gym
import pytest
from places import ROOT

import rstar2_env
from rstar2_env.core.errors import ConfigurationError, DuplicateNameError
from rstar2_env.problems.families import FAMILIES


def for_checkers():
    """What the face tells type checkers: the names that its ``if TYPE_CHECKING`` block binds."""
    tree = ast.parse((ROOT / "rstar2_env" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    bound = {}
    exec(compile(ast.Module(block.body, []), "rstar2_env/__init__.py", "exec"), bound)
    return {name: value for name, value in bound.items() if not name.startswith("_")}


def run(program, **options):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_type_checkers_are_told_of_the_very_objects_that_a_program_gets():
    told = for_checkers()
    assert {name: getattr(rstar2_env, name) for name in told} == told


def test_the_names_are_told_once_each_and_everywhere_alike():
    assert sorted(rstar2_env.__all__) == sorted({*for_checkers(), "__version__"})
    assert set(rstar2_env.__all__) <= set(dir(rstar2_env))


def test_no_name_hides_a_module():
    modules = {module.name for module in pkgutil.iter_modules(rstar2_env.__path__)}
    assert modules.isdisjoint(rstar2_env.__all__)


def test_a_name_is_loaded_when_it_is_first_used():
    late = "rstar2_env.evaluation.run"
    program = (
        f"import sys, rstar2_env; print({late!r} in sys.modules); rstar2_env.evaluate; print({late!r} in sys.modules)"
    )
    assert run(program).split() == ["False", "True"]


def test_every_name_together_loads_nothing_of_the_extras():
    program = (
        "import sys; from rstar2_env import *; print(*{'torch', 'trl', 'ray', 'docker', 'httpx'} & set(sys.modules))"
    )
    assert run(program).split() == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'toolenv'"):
        rstar2_env.toolenv  # noqa: B018


def test_nothing_lies_loose_beside_the_face():
    assert [path.name for path in (ROOT / "rstar2_env").glob("*.py")] == ["__init__.py"]


PLUGIN = """
from rstar2_env import FunctionTool, GoldGrader, ToolEnv, register_env

class PluginEnv(ToolEnv):
    def __init__(self, **options):
        super().__init__(problems=[{"question": "2+2?", "answer": "4"}], tools=[], grader=GoldGrader(), **options)

register_env("plugin/Sum-v0", PluginEnv)
"""


def test_a_distribution_that_joins_while_the_package_is_imported_may_import_from_the_face(tmp_path):
    (tmp_path / "plugin.py").write_text(PLUGIN)
    info = tmp_path / "plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[rstar2_env.envs]\nsum = plugin\n")
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import warnings; warnings.simplefilter("error", RuntimeWarning)
import gymnasium as gym, rstar2_env
env = gym.make("plugin/Sum-v0", disable_env_checker=True)
env.reset(seed=0)
print(env.step("<answer>\\\\boxed{{4}}</answer>")[1])
"""
    assert run(program).split() == ["1.0"]


@pytest.fixture
def unregistered():
    """An id and a family that are taken out again."""
    yield "mine/Test-v0"
    gym.registry.pop("mine/Test-v0", None)
    FAMILIES._parts.pop("mine_reversal", None)


@dataclass(frozen=True)
class Reversal(rstar2_env.Puzzle):
    """Write a word backwards.

    ## Answer
    Letters.

    ## Difficulty
    None.

    ## Random baseline
    0.0.
    """

    name = "mine_reversal"
    random_baseline = 0.0

    def draw(self, rng, split):
        word = "".join("abcdefgh"[n] for n in rng.integers(8, size=6))
        return rstar2_env.Draft(f"Write {word} backwards.", word[::-1], key=word, meta={"word": word})

    def solves(self, meta, answer):
        return answer == meta["word"][::-1]

    def guess(self, meta, rng):
        return meta["word"]


class TestRegisterEnv:
    def test_an_environment_can_be_made_alone_and_many_at_once(self, unregistered):
        class Capitals(rstar2_env.ToolEnv):
            def __init__(self, **options):
                problems = [{"question": "Of Peru?", "answer": "Lima"}]
                super().__init__(problems=problems, tools=[], grader=rstar2_env.GoldGrader(), **options)

        assert rstar2_env.register_env(unregistered, Capitals, max_turns=1) is Capitals
        env = rstar2_env.make_env(unregistered)
        env.reset(seed=0)
        assert env.step("<answer>\\boxed{Lima}</answer>")[1] == 1.0
        env.reset(seed=0)
        assert env.step(env.unwrapped.dialect.format_call("f", {}))[4]["end"] == "turns"
        many = gym.make_vec(unregistered, num_envs=2, vectorization_mode="vector_entry_point")
        assert len(many.reset(seed=0)[0]) == 2
        many.close()

    def test_a_puzzle_gets_its_environment_and_its_name_among_the_problems(self, unregistered):
        env = rstar2_env.register_env(unregistered, Reversal)
        assert issubclass(env, rstar2_env.PuzzleEnv)
        assert isinstance(gym.make(unregistered, disable_env_checker=True).unwrapped, env)
        assert rstar2_env.load_problems("mine_reversal")[0].question.startswith("Write ")

    def test_a_puzzle_takes_no_options(self, unregistered):
        with pytest.raises(ConfigurationError, match=r"does not take options for a Puzzle or a Game \(length\)"):
            rstar2_env.register_env(unregistered, Reversal, length=3)

    def test_what_makes_no_environment_is_refused(self, unregistered):
        with pytest.raises(ConfigurationError, match=r"expected an environment's class.*got 'mine:Capitals'"):
            rstar2_env.register_env(unregistered, "mine:Capitals")


def test_an_agent_is_registered_under_a_name_once():
    class Silent:
        def reset(self, observation, info, *, seed):
            pass

        def act(self, observation, info):
            return "nothing"

    rstar2_env.register_agent("test_face_silent", Silent)
    assert isinstance(rstar2_env.make_agent("test_face_silent"), Silent)
    with pytest.raises(DuplicateNameError):
        rstar2_env.register_agent("test_face_silent", object)
