"""``make_env``: creates any text environment by name, with options and wrappers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.options.user_code import place_of
from rstar2_env.env.named import EnvSpec, check_text, find_env
from rstar2_env.env.options import env_options
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.wrappers.registry import read_wrappers, wrap

_SET_TWICE = re.compile(r"got multiple values for keyword argument '(\w+)'")
_GYMS = " was raised from the environment creator"
_MISSING = re.compile(r"(\S+)\(\) missing \d+ required [\w-]+ arguments?: ((?:(?:, |,? and )?'\w+')+)")
E = TypeVar("E", bound="gym.Env[str, str]", covariant=True)


class MadeEnv(gym.Env[str, str], Generic[E]):
    """The return type of ``make_env`` for type checkers only, so that they know the type of ``unwrapped``.

    It is never instantiated: an environment keeps its class.
    """

    @property
    def unwrapped(self) -> E:
        """The environment without its wrappers."""
        raise NotImplementedError


@overload
def make_env(env: str, *, wrappers: str | Sequence[PartSpec] = (), **options: Any) -> MadeEnv[ToolEnv]: ...


@overload
def make_env(env: Callable[..., E], *, wrappers: str | Sequence[PartSpec] = (), **options: Any) -> MadeEnv[E]: ...


def make_env(env: EnvSpec, *, wrappers: str | Sequence[PartSpec] = (), **options: Any) -> gym.Env[str, str]:
    """Create a text environment and apply wrappers to it.

    Unlike ``gym.make``, it converts and checks the options, rejects environments that are not text in and text out,
    finds the user's own code, and does not add the passive checker, which warns about text spaces.

    Args:
        env: A Gymnasium id ("rstar2/MathTool-v0"); an id after the module or file that registers it
            ("./divisors.py:mine/Divisors-v0"); a class in your own module or file ("./divisors.py:DivisorsEnv");
            or the class or function itself.
        wrappers: Wrappers, innermost first: a name with options ("fault_injection:rate=0.1,kinds=timeout+lost"), a
            table (``{"name": "tool_budget", "calls": 3}``), ``[name, options]``, your own code
            ("./mine.py:MyWrapper"), or a class or function that takes the environment.
        **options: Options of the environment.

    Returns:
        The environment, with its wrappers. For type checkers, ``unwrapped`` has the type of the class or function that
        was passed; for a name it is a ``ToolEnv``, the base class of this package's environments.

    Raises:
        UnknownEnvError: The environment does not exist.
        UnknownNameError: A wrapper does not exist.
        ConfigurationError: An option is not valid, the environment is not a text environment, or the user's code
            cannot be imported.
    """
    found = find_env(env)
    parts = read_wrappers(wrappers)
    options = env_options(found, options)
    try:
        if found.env_id:
            made: gym.Env[str, str] = gym.make(found.env_id, disable_env_checker=True, **options)
        else:
            assert found.creator is not None  # only an environment with an id can lack a creator
            made = found.creator(**options)
    except Rstar2Error as error:
        # gym.make has raised the error again, with its own arguments added to the message.
        if (cause := error.__cause__) is not None and str(error).startswith(f"{cause}{_GYMS}"):
            raise cause from None
        raise
    except TypeError as error:
        missing = _MISSING.match(str(error))
        own = getattr(found.creator, "__qualname__", "")
        if missing is not None and missing[1] in (own, f"{own}.__init__"):
            names = re.findall(r"\w+", missing[2].replace(" and ", " "))
            needed = " and ".join(names)
            raise ConfigurationError(f"The environment {found.name} needs {needed}.", option=tuple(names)) from error
        set_twice = _SET_TWICE.search(str(error))
        if set_twice is None or set_twice[1] not in options:
            _name_line(env, error)
            raise
        name = set_twice[1]
        raise ConfigurationError(
            f"The environment {found.name} sets the option {name!r} itself, so no other value can be "
            f"given: omit the option, or let the environment's __init__ accept it (def __init__(self, {name}=..., "
            "**options)).",
            option=name,
        ) from error
    except Exception as error:
        _name_line(env, error)
        raise
    try:
        check_text(made, found.name)
        return wrap(made, parts)
    except BaseException:
        made.close()
        raise


def _name_line(env: EnvSpec, error: Exception) -> None:
    """If ``env`` is a name and the user's code raised ``error``, raise an error that names the line of that code."""
    if isinstance(env, str) and (place := place_of(error)):
        raise ConfigurationError(f"{env} cannot be created: {place}{type(error).__name__}: {error}") from error
