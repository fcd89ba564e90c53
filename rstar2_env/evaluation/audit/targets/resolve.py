"""Resolves the name of a target: a framework's object (``reasoning-gym:NAME``), a function, or an environment id.

If the framework is not installed, the error names the extra to install.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.options.user_code import user_code_name
from rstar2_env.env.named import find_env
from rstar2_env.evaluation.audit.targets import frameworks, ours
from rstar2_env.evaluation.audit.targets.functions import function_target
from rstar2_env.evaluation.audit.targets.target import Target, asked

KINDS: Mapping[str, Callable[[str], Target]] = MappingProxyType(
    {
        "verifier": ours.verifier_target,
        "reward": ours.reward_target,
        "reasoning-gym": frameworks.reasoning_gym_target,
        "verifiers": frameworks.verifiers_target,
        "openenv": frameworks.openenv_target,
        "nemo-gym": frameworks.nemo_gym_target,
        "lm-eval": frameworks.lm_eval_target,
        "inspect": frameworks.inspect_target,
    }
)
"""The functions that create a target, by the kind that stands before the colon in the target's name."""
_PACKAGES = {
    "reasoning-gym": ("reasoning_gym", "reasoning-gym"),
    "verifiers": ("verifiers", "verifiers"),
    "openenv": ("openenv", "openenv"),
    "lm-eval": ("lm_eval", "lm-eval"),
    "inspect": ("inspect_ai", "inspect"),
}


def resolve_target(written: str) -> Target:
    """Return the target with the given name.

    Args:
        written: ``module:function``, ``FILE.py:function``, ``KIND:NAME`` with a kind of ``KINDS``, or the id of an
            environment of this package.

    Raises:
        ConfigurationError: The target does not exist, or cannot be audited.
        MissingExtraError: The framework is not installed.
        UnknownNameError: There is no reward component, verifier or environment with that name.
    """
    kind, _, name = written.partition(":")
    if kind in KINDS:
        if not name:
            raise ConfigurationError(
                f"{written} names a kind of grader but no grader: add its name after the colon, as in {kind}:NAME."
            )
        if kind in _PACKAGES and importlib.util.find_spec(_PACKAGES[kind][0]) is None:
            raise MissingExtraError(_PACKAGES[kind][1], f"Auditing {written}")
        target = replace(KINDS[kind](name), name=written)
    elif (code := user_code_name(written)) is not None and code.name:
        target = function_target(code)
    else:
        find_env(written)
        target = ours.env_target(written)
        own = ours.own_env_target(written)
        if not asked(written, own.setup, "takes_problems()"):
            target = own
    if target.own_problems and not target.problems:
        told = asked(written, target.setup, "problems()")
        target = replace(target, problems=tuple((str(question), str(gold)) for question, gold in told))
    return target
