"""Games of TextArena (0.7) as environments of this package, and environments of this package as one-player games.

Covered: games of one player and of several players (agents play the other seats, that is, the other players), invalid
moves, outcomes and their reasons. An observation has only TextArena's messages since the policy's last turn;
TextArena's observation wrappers would repeat the whole history at every turn. Not covered: TextArena's servers.

TextArena draws from Python's global random state; this adapter restores that state
(``rstar2_env.adapters.base.global_random``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from rstar2_env.adapters.base.foreign import ForeignEnv, Opening, TurnReply
from rstar2_env.adapters.base.global_random import GlobalRandom
from rstar2_env.core.errors import ConfigurationError, MissingExtraError, UnknownNameError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.options.declare import Count, checked
from rstar2_env.core.options.user_code import find_user_code, user_code_name
from rstar2_env.env.turn_result import StepReturn
from rstar2_env.wrappers.make import make_env

try:
    import textarena as ta
    from textarena.envs.registration import ENV_REGISTRY
except ImportError as error:
    raise MissingExtraError("textarena", "The adapter 'textarena'") from error

Opponent = Callable[[str], str]
"""TextArena's own agent protocol: a function from a player's observation to that player's move."""


class TextArenaEnv(ForeignEnv):
    """Environment that plays a game of TextArena.

    The reward is the policy's reward at the end of the game (1 for a win, -1 for a loss, 0 for a draw; in a
    game of one player, the share of the goal that was reached). ``info`` has ``invalid_move`` at each turn and, at the
    end, the game's ``reason`` and the ``rewards`` of all seats. After the end of the game, the episode is ``answered``.
    Only ``max_turns`` truncates an episode: TextArena reports its own limit of turns as an outcome.

    Args:
        game: Id of TextArena ("GuessTheNumber-v0", "TicTacToe-v0").
        opponent: Plays the other seats: a function, a class, or the name of your own function or class
            ("./mine.py:Player"). An instance of a class plays one seat of one game.
        players: Number of players (seats) of the game.
        seat: Seat of the policy: its player number, from 0.
        max_turns: Maximum number of turns of the policy.
        full_reward: Minimum reward at which an episode counts as solved.
        game_options: Options of the game's class.

    Raises:
        UnknownNameError: There is no such game.
        ConfigurationError: A game of several players has no opponent, or the seat does not exist.
    """

    held: ClassVar[tuple[str, ...]] = ("_theirs", "_others")

    @checked
    def __init__(
        self,
        *,
        game: str,
        opponent: str | Callable[..., Any] | None = None,
        players: Count = 1,
        seat: int = 0,
        max_turns: Count = 50,
        full_reward: float = 1.0,
        game_options: Mapping[str, Any] | None = None,
    ) -> None:
        if game not in ENV_REGISTRY:
            raise UnknownNameError("game of TextArena", game, ENV_REGISTRY)
        if not 0 <= seat < players:
            raise ConfigurationError(f"The option `seat` must be a number from 0 to {players - 1}, not {seat}.")
        if players > 1 and opponent is None:
            raise ConfigurationError(
                f"A game with {players} players needs an opponent: pass opponent='./mine.py:Player'."
            )
        super().__init__(f"textarena/{game}", max_turns=max_turns, full_reward=full_reward)
        self._game, self._players, self._seat = game, players, seat
        self._options = dict(game_options or {})
        self._opponent = _found(opponent) if isinstance(opponent, str) else opponent
        self._random = GlobalRandom()
        self._theirs: Any = None
        self._others: dict[int, Opponent] = {}

    def begin(self, number: int) -> Opening:
        """Start the game with the number as its seed, and play the other seats until it is the policy's turn."""
        with self._random.seeded(number):
            self._theirs = ta.make(self._game, **self._options)
            self._theirs.reset(num_players=self._players, seed=number)
            assert self._opponent is not None or self._players == 1
            made: Any = self._opponent
            self._others = {
                seat: made() if isinstance(made, type) else made
                for seat in range(self._players)
                if seat != self._seat and made is not None
            }
            if self._others_play():
                raise ConfigurationError(
                    f"The game {self._game} with the seed {number} ended before the policy's first turn: "
                    "choose another seat."
                )
            return Opening(self._news())

    def play(self, turn: str) -> TurnReply:
        """Play the policy's move, and then the other seats until it is the policy's turn again."""
        with self._random.resumed():
            errors = self._errors()
            done = self._theirs.step(turn)[0] or self._others_play()
            invalid = self._errors() > errors
            if not done:
                return TurnReply(self._news(), info={"invalid_move": invalid})
            rewards, told = self._theirs.close()
            mine = told.get(self._seat, {})
            return TurnReply(
                reward=float((rewards or {}).get(self._seat, 0.0)),
                end="answered",
                info={
                    "invalid_move": bool(mine.get("invalid_move")),
                    "reason": str(mine.get("reason", "")),
                    "rewards": {str(seat): float(value) for seat, value in (rewards or {}).items()},
                },
            )

    def _others_play(self) -> bool:
        """Play the other seats until it is the policy's turn; return whether the game is over."""
        while self._theirs.state.current_player_id != self._seat:
            seat, shown = self._theirs.get_observation()
            if self._theirs.step(self._others[seat](str(shown)))[0]:
                return True
        return False

    def _news(self) -> str:
        """Return the messages to the policy's seat since its last turn, without the policy's own messages."""
        told = self._inner().get_observation()[1]
        names = self._theirs.state.role_mapping
        lines = []
        for sender, message, kind in told:
            if sender == self._seat and kind is ta.ObservationType.PLAYER_ACTION:
                continue
            name = "GAME" if sender == ta.GAME_ID else names.get(sender, f"Player {sender}")
            lines.append(f"[{name}] {message}")
        return "\n".join(lines)

    def _inner(self) -> Any:
        """Return the game without its observation wrappers, which would consume the messages."""
        inner = self._theirs
        while isinstance(inner, ta.Wrapper):
            inner = inner.env
        return inner

    def _errors(self) -> int:
        return int(getattr(self._theirs.state, "error_count", 0))


class ServedGame(ta.Env):
    """An environment of this package as a one-player game; ``register`` gives it an id of TextArena.

    Args:
        env: A registered id, or any other value that ``make_env`` accepts.
        **options: Options of ``make_env``: options of the environment, and ``wrappers``.
    """

    def __init__(self, env: str, **options: Any) -> None:
        super().__init__()
        self._env = make_env(env, **options)

    def reset(self, num_players: int, seed: int | None = None) -> None:
        """Start an episode.

        Raises:
            ConfigurationError: There is more than one player.
        """
        if num_players != 1:
            raise ConfigurationError(
                f"{self._env.spec or self._env} is an environment for one player, not {num_players}."
            )
        text, info = self._env.reset(seed=seed)
        self.state = ta.SinglePlayerState(num_players=1, seed=None)
        self.state.reset(game_state={"problem_id": info.get("problem_id", "")})
        self._return = 0.0
        if info.get("system"):
            self.state.add_observation(info["system"], ta.ObservationType.PROMPT, to_id=0)
        self.state.add_observation(text, ta.ObservationType.PROMPT, to_id=0)

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Play one turn; return whether the game is over, and the environment's ``info``."""
        returned: StepReturn = self._env.step(action)  # type: ignore[assignment]  # Gymnasium's reward is SupportsFloat
        text, reward, terminated, truncated, info = returned
        self._return += float(reward)
        self.state.add_observation(action, ta.ObservationType.PLAYER_ACTION, from_id=0)
        self.state.step_info = {**jsonable(info), "terminated": terminated, "truncated": truncated}
        if text:
            self.state.add_observation(text, ta.ObservationType.GAME_MESSAGE)
        if terminated or truncated:
            self.state.set_outcome(reward=self._return, reason=str(info.get("end", "")))
        done, told = self.state.step()
        return done, told

    def close(self) -> tuple[dict[int, float] | None, dict[int, dict[str, Any]]]:
        """Return the reward of each player (``None`` before the end), and TextArena's information on each player."""
        outcome: tuple[dict[int, float] | None, dict[int, dict[str, Any]]] = self.state.close()
        return outcome


def register(game: str, env: str, *, wrappers: Sequence[Any] = (), **options: Any) -> None:
    """Register an environment of this package under an id of TextArena.

    Args:
        game: The new id of TextArena.
        env: A registered id of this package, or any other value that ``make_env`` accepts.
        wrappers: TextArena's wrappers around the game.
        **options: Options of the environment.
    """
    make_env(env, **options).close()  # reports wrong options here, not in every episode
    ta.envs.registration.register(game, ServedGame, default_wrappers=list(wrappers), env=env, **options)


def _found(name: str) -> Any:
    own = user_code_name(name)
    if own is None:
        raise ConfigurationError(
            f'The option opponent must have the form "module:Name" or "./file.py:Name", not {name!r}.'
        )
    return find_user_code(own, "opponent", None, {})
