"""``make_env`` makes any text environment by its name, and says what is wrong with the name or its options."""

from __future__ import annotations

import pickle
import sys

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError, UnknownEnvError
from rstar2_env.testing import StubSandbox
from rstar2_env.wrappers import FaultInjection, ToolBudget, make_env

OWN = """\
import gymnasium as gym
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv


class DivisorsEnv(ToolEnv):
    def __init__(self, *, number: int = 12, **options):
        problems = [{"id": "one", "question": f"How many divisors has {number}?", "answer": "6"}]
        super().__init__(problems=problems, tools=[], grader=GoldGrader(), **options)


"""
REGISTERED = 'gym.register("mine{0}/Divisors-v0", entry_point="{1}:DivisorsEnv")\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    modules, ids = set(sys.modules), set(gym.registry)
    yield tmp_path
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    for name in set(gym.registry) - ids:
        del gym.registry[name]


def solved(env):
    with env:
        env.reset(seed=1)
        return env.step("<answer>\\boxed{6}</answer>")[1] == 1.0


def test_an_id_with_options_and_wrappers():
    env = make_env(
        "rstar2/MathTool-v0",
        wrappers=["fault_injection:rate=1", "tool_budget:calls=2"],
        sandbox=StubSandbox(),
        max_turns=1,
    )
    assert type(env) is ToolBudget
    assert type(env.env) is FaultInjection
    env.reset(seed=1)
    call = env.unwrapped.dialect.format_call("execute_python_code_with_standard_io", {"code": "1", "input": ""})
    assert env.step(call)[4]["end"] == "turns"


def test_an_id_without_a_version_is_its_highest():
    with make_env("rstar2/TicTacToe") as env:
        assert env.spec.id == "rstar2/TicTacToe-v0"


def test_a_class_and_a_function_are_called_with_the_options(folder):
    (folder / "own_env_0.py").write_text(OWN)
    sys.path.append(str(folder))
    made = __import__("own_env_0").DivisorsEnv
    assert "number 18" in make_env(lambda **options: made(**options), number="number 18").reset(seed=1)[0]
    assert type(make_env(made, max_turns=3)) is made


class TestOnesOwn:
    @pytest.mark.parametrize(
        "form", ["own_env_1:mine1/Divisors-v0", "./own_env_1.py:mine1/Divisors-v0", "./own_env_1.py"]
    )
    def test_an_id_that_a_module_or_a_file_registers(self, folder, form):
        (folder / "own_env_1.py").write_text(OWN + REGISTERED.format(1, "own_env_1"))
        env = make_env(form, number=18)
        assert env.spec.id == "mine1/Divisors-v0"
        assert "divisors has 18" in env.reset(seed=1)[0]
        assert solved(env)

    @pytest.mark.parametrize("form", ["own_env_2:DivisorsEnv", "./own_env_2.py:DivisorsEnv", "./own_env_2.py"])
    def test_a_class_that_nobody_registered(self, folder, form):
        (folder / "own_env_2.py").write_text(OWN)
        env = make_env(form, wrappers=["save_state"])
        assert type(pickle.loads(pickle.dumps(env.unwrapped))) is type(env.unwrapped)
        assert solved(env)

    def test_several_environments_are_listed(self, folder):
        both = REGISTERED.format(3, "own_env_3") + REGISTERED.format(33, "own_env_3")
        (folder / "own_env_3.py").write_text(OWN + both)
        with pytest.raises(ConfigurationError, match=r"several environments .*mine3/Divisors-v0, mine33/Divisors-v0"):
            make_env("./own_env_3.py")

    def test_a_wrong_id_in_ones_own_module_suggests_the_nearest(self, folder):
        (folder / "own_env_4.py").write_text(OWN + REGISTERED.format(4, "own_env_4"))
        with pytest.raises(UnknownEnvError, match="Did you mean 'mine4/Divisors-v0'"):
            make_env("own_env_4:mine4/Divisor-v0")

    def test_code_that_fails_is_named_with_file_and_line(self, folder):
        (folder / "own_env_5.py").write_text(OWN + "1/0\n")
        line = OWN.count("\n") + 1
        with pytest.raises(ConfigurationError, match=f"own_env_5.py, line {line}: ZeroDivisionError"):
            make_env("own_env_5:mine/Divisors-v0")


class TestMistakes:
    def test_an_unknown_id_suggests_the_nearest_and_is_gymnasiums_error_too(self):
        with pytest.raises(UnknownEnvError, match="Did you mean 'rstar2/MathTool-v0'") as found:
            make_env("rstar2/MathTol-v0")
        assert isinstance(found.value, gym.error.UnregisteredEnv)
        assert "Ant-v2" not in str(found.value)

    @pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1"])
    def test_what_is_not_text_is_refused(self, env_id):
        with pytest.raises(ConfigurationError, match=rf"{env_id} is not a text environment: its actions are Discrete"):
            make_env(env_id)

    def test_what_is_no_environment_is_refused(self):
        with pytest.raises(ConfigurationError, match="got 3"):
            make_env(3)

    def test_an_id_whose_code_is_not_there_says_so(self, folder):
        gym.register("mine6/Gone-v0", entry_point="no_such_module_6:GoneEnv")
        with pytest.raises(ConfigurationError, match="registered as no_such_module_6:GoneEnv, which cannot be loaded"):
            make_env("mine6/Gone-v0")

    def test_an_option_that_the_environment_sets_itself_is_refused(self, folder):
        (folder / "own_env_7.py").write_text(OWN)
        with pytest.raises(ConfigurationError, match=r"sets the option 'problems' itself.*__init__ accept it"):
            make_env("./own_env_7.py", problems="arithmetic")

    def test_an_option_that_the_environment_needs_is_named(self, folder):
        (folder / "own_env_8.py").write_text(OWN.replace("number: int = 12", "number: int"))
        with pytest.raises(ConfigurationError, match=r"The environment \./own_env_8\.py needs number"):
            make_env("./own_env_8.py")

    def test_an_error_of_an_environment_of_this_package_names_no_line_of_it(self):
        with pytest.raises(
            ConfigurationError, match=r"^The dialect 'fenced' has no option 'x'\. It takes: [\w, ]+\.(\n|$)"
        ):
            make_env("rstar2/MathTool-v0", dialect="fenced:x=1")

    def test_an_error_about_an_option_of_a_part_keeps_the_part(self):
        with pytest.raises(ConfigurationError, match=r"^The verifier 'rules:tolerance=x': tolerance must be a number"):
            make_env("rstar2/MathTool-v0", verifier="rules:tolerance=x")

    def test_a_wrapper_that_does_not_fit_leaves_nothing_open(self):
        closed = []

        class Closing(gym.Env):
            def close(self):
                closed.append(True)

        with pytest.raises(ConfigurationError, match=r"FaultInjection .* ToolChain"):
            make_env(Closing, wrappers=["fault_injection"])
        assert closed == [True]


def test_an_error_in_the_constructor_of_a_file_is_named_with_its_line(folder):
    (folder / "broken.py").write_text(OWN.replace("problems=problems, tools=[], ", "problems=problems, "))
    with pytest.raises(
        ConfigurationError, match=r"broken\.py cannot be created: .*broken\.py, line 9: TypeError: .*'tools'"
    ):
        make_env("./broken.py")
    (folder / "raises.py").write_text(
        OWN.replace("        problems =", "        raise OSError('gone')\n        problems =")
    )
    with pytest.raises(
        ConfigurationError, match=r"raises\.py:DivisorsEnv cannot be created: .*raises\.py, line 8: OSError: gone"
    ):
        make_env("./raises.py:DivisorsEnv")
