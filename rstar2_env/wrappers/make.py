"""``make_env``: any text environment by its name, with options and wrappers, ready to play."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from rstar2_env.core.options.parts import PartSpec
from rstar2_env.env.named import EnvSpec, check_text, find_env
from rstar2_env.env.options import env_options
from rstar2_env.wrappers.registry import read_wrappers, wrap


def make_env(env: EnvSpec, *, wrappers: str | Sequence[PartSpec] = (), **options: Any) -> gym.Env[str, str]:
    """Make a text environment and put wrappers around it.

    Unlike ``gym.make`` it types and checks the options, refuses what is not text in and text out, finds the user's own
    code, and adds no passive checker, which warns about text.

    Args:
        env: A Gymnasium id ("rstar2/MathTool-v0"), also with the module or file that registers it
            ("./divisors.py:mine/Divisors-v0"); a class in a module or file of one's own ("./divisors.py:DivisorsEnv");
            or the class or a function itself.
        wrappers: The innermost first, each by name with its options ("fault_injection:rate=0.1,kinds=timeout+lost"), as
            a table (``{"name": "tool_budget", "calls": 3}``), as ``[name, options]``, one's own
            ("./mine.py:MyWrapper"), or a class or function that takes the environment.
        **options: Of the environment.

    Raises:
        UnknownEnvError: There is no such environment.
        UnknownNameError: There is no such wrapper.
        ConfigurationError: An option does not fit; it is no text environment; or one's own code cannot be imported.
    """
    found = find_env(env)
    parts = read_wrappers(wrappers)
    options = env_options(found, options)
    if found.env_id:
        made: gym.Env[str, str] = gym.make(found.env_id, disable_env_checker=True, **options)
    else:
        assert found.creator is not None  # only a registered one may lack it
        made = found.creator(**options)
    try:
        check_text(made, found.name)
        return wrap(made, parts)
    except BaseException:
        made.close()
        raise
