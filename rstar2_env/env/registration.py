"""``register_env``: registers the Gymnasium id of an environment of any kind, with its vector form.

Not covered: how environments are created (``rstar2_env.wrappers.make``), and how environments of other Python
distributions are found (``rstar2_env.core.options.plugins``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env import game_env, puzzle_env
from rstar2_env.env.game_env import Game, GameEnv
from rstar2_env.env.puzzle_env import Puzzle, PuzzleEnv
from rstar2_env.env.vector import vector_entry_point

MakerT = TypeVar("MakerT", bound=Callable[..., "gym.Env[str, str]"])


@overload
def register_env(env_id: str, part: type[Puzzle]) -> type[PuzzleEnv]: ...
@overload
def register_env(env_id: str, part: type[Game]) -> type[GameEnv]: ...
@overload
def register_env(env_id: str, part: MakerT, **options: Any) -> MakerT: ...
def register_env(env_id: str, part: Any, **options: Any) -> Any:
    """Register a Gymnasium id; afterwards ``gym.make(env_id)`` and ``gym.make_vec(env_id)`` create the environment.

    Args:
        env_id: The Gymnasium id, such as "mine/Divisors-v0".
        part: A ``ToolEnv`` (or the class of any text environment, or a function that creates one), a ``Puzzle`` or a
            ``Game``. A ``Puzzle`` or ``Game`` must be at the top level of its module; its environment's class is added
            to the same module.
        **options: Default arguments that this id passes to ``part``; not for a ``Puzzle`` or a ``Game``, whose fields
            have their own defaults.

    Returns:
        The environment's class: ``part`` itself, or the class created for the ``Puzzle`` or the ``Game``.

    Raises:
        ConfigurationError: ``part`` has another type, or options are given for a ``Puzzle`` or a ``Game``.
        DuplicateNameError: Another family already has the puzzle's name.
    """
    if isinstance(part, type) and issubclass(part, (Puzzle, Game)):
        if options:
            raise ConfigurationError(
                f"{env_id}: register_env does not take options for a Puzzle or a Game "
                f"({', '.join(options)}): change the defaults of the Puzzle's or Game's own options instead."
            )
        return puzzle_env.register(env_id, part) if issubclass(part, Puzzle) else game_env.register(env_id, part)
    if not callable(part):
        raise ConfigurationError(
            f"{env_id}: expected an environment's class, a function that creates one, a Puzzle or a Game, got {part!r}."
        )
    gym.register(env_id, entry_point=part, kwargs=options, vector_entry_point=vector_entry_point(env_id))
    return part
