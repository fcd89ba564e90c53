"""Tools for testing your own parts: a check for each kind of part, and stubs for the sandbox and for tools.

``check_text_env``, ``check_agent``, ``check_wrapper`` and ``check_sandbox`` report every clause of the contract that a
part breaks. The checks of a trainer's parts do the same, one for each slot: ``check_rollout``, ``check_reward``,
``check_selector``, ``check_advantage``, ``check_loss``, ``check_aggregation``, ``check_correction``, ``check_sampler``,
``check_hook``; and ``check_recipe``. ``attack`` and ``attack_env`` count, by cause, the hacks (wrong answers) that a
verifier or an environment rewards.

pytest fixtures are in ``rstar2_env.testing.fixtures``; nothing else here needs pytest.
"""

from __future__ import annotations

from rstar2_env.testing.agent_checks import AGENT_CHECKS, check_agent
from rstar2_env.testing.env_checks import CHECKS, check_text_env
from rstar2_env.testing.hacks import Hack, attack, attack_env
from rstar2_env.testing.harness import ConformanceError
from rstar2_env.testing.hostile import HOSTILE_TURNS
from rstar2_env.testing.hostile_code import HOSTILE_LIMITS, HostileProgram, hostile_programs
from rstar2_env.testing.sandbox_checks import SANDBOX_CHECKS, check_sandbox
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.testing.stub_tool import StubTool
from rstar2_env.testing.toy_env import PlainEnv, PlainWrapper, ToyEnv, same_text
from rstar2_env.testing.training.advantage import ADVANTAGE_CHECKS, check_advantage
from rstar2_env.testing.training.aggregation import AGGREGATION_CHECKS, check_aggregation
from rstar2_env.testing.training.correction import CORRECTION_CHECKS, check_correction
from rstar2_env.testing.training.hook import HOOK_CHECKS, check_hook
from rstar2_env.testing.training.loss import LOSS_CHECKS, check_loss
from rstar2_env.testing.training.recipe import RECIPE_CHECKS, check_recipe
from rstar2_env.testing.training.reward import REWARD_CHECKS, check_reward
from rstar2_env.testing.training.rollout import ROLLOUT_CHECKS, check_rollout
from rstar2_env.testing.training.sampler import SAMPLER_CHECKS, check_sampler
from rstar2_env.testing.training.selector import SELECTOR_CHECKS, check_selector
from rstar2_env.testing.wrapper_checks import WRAPPER_CHECKS, check_wrapper

__all__ = [
    "ADVANTAGE_CHECKS",
    "AGENT_CHECKS",
    "AGGREGATION_CHECKS",
    "CHECKS",
    "CORRECTION_CHECKS",
    "HOOK_CHECKS",
    "HOSTILE_LIMITS",
    "HOSTILE_TURNS",
    "LOSS_CHECKS",
    "RECIPE_CHECKS",
    "REWARD_CHECKS",
    "ROLLOUT_CHECKS",
    "SAMPLER_CHECKS",
    "SANDBOX_CHECKS",
    "SELECTOR_CHECKS",
    "WRAPPER_CHECKS",
    "ConformanceError",
    "Hack",
    "HostileProgram",
    "PlainEnv",
    "PlainWrapper",
    "StubSandbox",
    "StubTool",
    "ToyEnv",
    "attack",
    "attack_env",
    "check_advantage",
    "check_agent",
    "check_aggregation",
    "check_correction",
    "check_hook",
    "check_loss",
    "check_recipe",
    "check_reward",
    "check_rollout",
    "check_sampler",
    "check_sandbox",
    "check_selector",
    "check_text_env",
    "check_wrapper",
    "hostile_programs",
    "same_text",
]
