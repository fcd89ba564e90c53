"""Math problems with a Python tool as Gymnasium text environments, and trainers whose parts are chosen by name.

Importing the package registers its environments with Gymnasium::

    import gymnasium as gym
    import rstar2_env

    env = gym.make("rstar2/MathTool-v0")

This is the public interface: the names of ``__all__`` are imported from here, and each is loaded when it is first used.
Further names are in the packages ``rstar2_env.agents``, ``.trainers``, ``.wrappers``, ``.tools``, ``.problems``,
``.sandbox``, ``.verification``, ``.rollout`` and ``.testing``. Nothing heavy is imported here: torch, TRL, vLLM, Ray
and Docker are loaded only by the parts that use them. No module of this package imports from here.
"""

from __future__ import annotations

from rstar2_env.core.command.early_interrupt import end_on_interrupt

end_on_interrupt()  # first, so that Ctrl-C can end the program during the other imports

from typing import TYPE_CHECKING  # noqa: E402

from rstar2_env.core.lazy_names import lazy_names  # noqa: E402
from rstar2_env.core.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from rstar2_env.agents.base import AGENTS as _AGENTS
    from rstar2_env.agents.base import make as make_agent
    from rstar2_env.core.episode import Episode
    from rstar2_env.core.errors import ConfigurationError, Rstar2Error
    from rstar2_env.core.run_folder.reader import read_run
    from rstar2_env.core.status import ToolStatus
    from rstar2_env.dialects.base import DIALECTS as _DIALECTS
    from rstar2_env.env.agent import Agent
    from rstar2_env.env.game_env import Game, GameEnv, IllegalMoveError
    from rstar2_env.env.grading import GoldGrader
    from rstar2_env.env.puzzle_env import Puzzle, PuzzleEnv, UnreadableAnswerError, knob
    from rstar2_env.env.registration import register_env
    from rstar2_env.env.tool_env import ToolEnv
    from rstar2_env.env.turn_result import Ended, GoesOn
    from rstar2_env.evaluation.play.episode import play_episode
    from rstar2_env.evaluation.run import evaluate
    from rstar2_env.evaluation.validation import validate
    from rstar2_env.problems.families import FAMILIES as _FAMILIES
    from rstar2_env.problems.load import load_problems
    from rstar2_env.problems.problem import Problem
    from rstar2_env.problems.procedural import Draft, ProceduralSource
    from rstar2_env.rewards.base import REWARDS as _REWARDS
    from rstar2_env.sandbox.job import Job
    from rstar2_env.sandbox.limits import Limits
    from rstar2_env.sandbox.providers import PROVIDERS as _PROVIDERS
    from rstar2_env.sandbox.providers import make_sandbox
    from rstar2_env.tools.base import CallContext
    from rstar2_env.tools.function import FunctionTool
    from rstar2_env.tools.notebook import NotebookTool
    from rstar2_env.tools.python import PythonTool
    from rstar2_env.verification.api import verify
    from rstar2_env.verification.named import VERIFIERS as _VERIFIERS
    from rstar2_env.verification.verdict import Verdict
    from rstar2_env.wrappers.make import make_env
    from rstar2_env.wrappers.registry import WRAPPERS as _WRAPPERS

    register_agent = _AGENTS.register
    register_dialect = _DIALECTS.register
    register_problems = _FAMILIES.register
    register_sandbox = _PROVIDERS.register
    register_reward = _REWARDS.register
    register_verifier = _VERIFIERS.register
    register_wrapper = _WRAPPERS.register

__all__ = [
    "Agent",
    "CallContext",
    "ConfigurationError",
    "Draft",
    "Ended",
    "Episode",
    "FunctionTool",
    "Game",
    "GameEnv",
    "GoesOn",
    "GoldGrader",
    "IllegalMoveError",
    "Job",
    "Limits",
    "NotebookTool",
    "Problem",
    "ProceduralSource",
    "Puzzle",
    "PuzzleEnv",
    "PythonTool",
    "Rstar2Error",
    "ToolEnv",
    "ToolStatus",
    "UnreadableAnswerError",
    "Verdict",
    "__version__",
    "evaluate",
    "knob",
    "load_problems",
    "make_agent",
    "make_env",
    "make_sandbox",
    "play_episode",
    "read_run",
    "register_agent",
    "register_dialect",
    "register_env",
    "register_problems",
    "register_reward",
    "register_sandbox",
    "register_verifier",
    "register_wrapper",
    "validate",
    "verify",
]

_WHERE = {
    "Agent": "env.agent",
    "CallContext": "tools.base",
    "ConfigurationError": "core.errors",
    "Draft": "problems.procedural",
    "Ended": "env.turn_result",
    "Episode": "core.episode",
    "FunctionTool": "tools.function",
    "Game": "env.game_env",
    "GameEnv": "env.game_env",
    "GoesOn": "env.turn_result",
    "GoldGrader": "env.grading",
    "IllegalMoveError": "env.game_env",
    "Job": "sandbox.job",
    "Limits": "sandbox.limits",
    "NotebookTool": "tools.notebook",
    "Problem": "problems.problem",
    "ProceduralSource": "problems.procedural",
    "Puzzle": "env.puzzle_env",
    "PuzzleEnv": "env.puzzle_env",
    "PythonTool": "tools.python",
    "Rstar2Error": "core.errors",
    "ToolEnv": "env.tool_env",
    "ToolStatus": "core.status",
    "UnreadableAnswerError": "env.puzzle_env",
    "Verdict": "verification.verdict",
    "evaluate": "evaluation.run",
    "knob": "env.puzzle_env",
    "load_problems": "problems.load",
    "make_agent": "agents.base:make",
    "make_env": "wrappers.make",
    "make_sandbox": "sandbox.providers",
    "play_episode": "evaluation.play.episode",
    "read_run": "core.run_folder.reader",
    "register_agent": "agents.base:AGENTS.register",
    "register_dialect": "dialects.base:DIALECTS.register",
    "register_env": "env.registration",
    "register_problems": "problems.families:FAMILIES.register",
    "register_sandbox": "sandbox.providers:PROVIDERS.register",
    "register_reward": "rewards.base:REWARDS.register",
    "register_verifier": "verification.named:VERIFIERS.register",
    "register_wrapper": "wrappers.registry:WRAPPERS.register",
    "validate": "evaluation.validation",
    "verify": "verification.api",
}
"""The module of each public name, followed by ``:attribute`` if the module uses another name for the object."""


if not TYPE_CHECKING:  # with ``__getattr__``, a type checker would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)


def _register_environments() -> None:
    from rstar2_env.core.options.plugins import load_env_plugins
    from rstar2_env.core.options.registry import import_modules
    from rstar2_env.env.vector import add_vector_forms

    import_modules("rstar2_env.envs_registry")
    load_env_plugins()
    add_vector_forms()


# At the end: a plugin that is imported here imports its names from this package.
_register_environments()
