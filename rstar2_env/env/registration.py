"""``register_env``: gives an environment of any kind its Gymnasium id, and its vector form.

Not covered: making environments (``rstar2_env.wrappers.make``), and finding those of other distributions
(``rstar2_env.core.options.plugins``).
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
    """Give an environment its Gymnasium id; ``gym.make(env_id)`` and ``gym.make_vec(env_id)`` make it from then on.

    Args:
        env_id: Like "mine/Divisors-v0".
        part: A ``ToolEnv`` (or any text environment's class, or a function that makes one), a ``Puzzle`` or a
            ``Game``. The last two stand at the top of their module, beside which their environment's class is put.
        **options: Arguments that this id passes to ``part`` by default; a ``Puzzle`` and a ``Game`` have knobs instead.

    Returns:
        The environment's class: ``part`` itself, or what was made of the ``Puzzle`` or the ``Game``.

    Raises:
        ConfigurationError: ``part`` is none of these, or a ``Puzzle`` or a ``Game`` is given options.
        DuplicateNameError: Another family has the puzzle's name.
    """
    if isinstance(part, type) and issubclass(part, (Puzzle, Game)):
        if options:
            raise ConfigurationError(
                f"{env_id}: a Puzzle or Game takes no options where it is registered ({', '.join(options)}); give its "
                "knobs other defaults."
            )
        return puzzle_env.register(env_id, part) if issubclass(part, Puzzle) else game_env.register(env_id, part)
    if not callable(part):
        raise ConfigurationError(
            f"{env_id}: expected an environment's class, a function that makes one, a Puzzle or a Game, got {part!r}."
        )
    gym.register(env_id, entry_point=part, kwargs=options, vector_entry_point=vector_entry_point(env_id))
    return part
