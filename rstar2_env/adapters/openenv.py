"""An OpenEnv server (``openenv`` 0.10) for a text environment, and a typed client for that server.

Covered: one environment for each client's connection (OpenEnv's WebSocket protocol); the whole contract in the
observation (text, reward, ``terminated``, ``truncated`` and ``info``); state; metadata. Not covered: authentication
(put a proxy with authentication in front of a server that others can reach), and episodes of several turns over
OpenEnv's stateless HTTP routes ``/reset`` and ``/step``, which make a new environment for every request.

Any OpenEnv client can use the server; an action is ``{"text": "..."}``. The problem's gold answer never leaves the
server.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rstar2_env.adapters.base.messages import as_json
from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.options.declare import Count, Seconds, checked
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.wrappers.make import make_env

try:
    import uvicorn
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, ConcurrencyConfig, EnvironmentMetadata, Observation, State
    from pydantic import Field
    from starlette.websockets import WebSocketDisconnect

    from rstar2_env.adapters.base.serving import serve_app
except ImportError as error:
    raise MissingExtraError("openenv", "The adapter 'openenv'") from error

_LARGEST_MESSAGE = 64 << 20
_LOG = logging.getLogger(__name__)


class TextAction(Action):
    """An action of a client: the text of the policy's whole turn."""

    text: str


class TextObservation(Observation):
    """Result of ``reset`` or ``step``; ``reward`` and ``done`` are OpenEnv's own fields.

    Attributes:
        text: The next observation of the policy.
        terminated: Whether the episode reached its end.
        truncated: Whether a budget ended the episode, or the episode is ``unavailable``.
        info: The environment's ``info``; values that JSON cannot hold are converted to text.
    """

    text: str = ""
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = Field(default_factory=dict)


class TextState(State):
    """State of a connection's environment; OpenEnv's ``State`` also has ``episode_id`` and ``step_count``.

    Attributes:
        env_id: The environment's Gymnasium id.
        problem_id: Id of the running episode's problem; empty before the first episode.
    """

    env_id: str = ""
    problem_id: str = ""


class OpenEnvServed(Environment):
    """An environment behind OpenEnv's interface; the server makes one for each connection.

    Args:
        env_id: A Gymnasium id, or your own code, as for ``make_env``.
        env_options: Options of the environment.
        wrappers: Wrappers of the environment, innermost first, as for ``make_env``.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self,
        env_id: str,
        env_options: Mapping[str, Any] | None = None,
        wrappers: str | Sequence[PartSpec] = (),
    ) -> None:
        super().__init__()
        self._env = make_env(env_id, wrappers=wrappers, **(env_options or {}))
        self._state = TextState(env_id=env_id)

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        options: dict[str, Any] | None = None,
        **unknown: Any,
    ) -> TextObservation:
        """Start an episode.

        Args:
            seed: Seed for the environment's ``reset``.
            episode_id: The client's name for the episode; returned in the state.
            options: Options for the environment's ``reset``: ``{"problem_id": ...}`` or ``{"problem": {...}}``.
            **unknown: Rejected.

        Raises:
            ConfigurationError: ``unknown`` is not empty, or the environment rejects the options.
        """
        if unknown:
            raise ConfigurationError(
                f"reset accepts only seed, episode_id and options, not {', '.join(sorted(unknown))}."
            )
        text, info = self._env.reset(seed=seed, options=options)
        self._state = TextState(
            env_id=self._state.env_id, episode_id=episode_id, problem_id=str(info.get("problem_id", ""))
        )
        return TextObservation(text=text, info=as_json(info))

    def step(self, action: TextAction, timeout_s: float | None = None, **_: Any) -> TextObservation:
        """Play one turn.

        Args:
            action: The policy's turn.
            timeout_s: Ignored: the environment's own budgets apply.
            **_: Ignored.
        """
        text, reward, terminated, truncated, info = self._env.step(action.text)
        self._state.step_count += 1
        return TextObservation(
            text=text,
            reward=float(reward),
            done=terminated or truncated,
            terminated=terminated,
            truncated=truncated,
            info=as_json(info),
        )

    @property
    def state(self) -> TextState:
        """State of the episode."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the environment's name, version and specification."""
        text = inspect.getdoc(type(self._env.unwrapped)) or ""
        name, _, version = self._state.env_id.rpartition("-v")
        line = text.partition("\n")[0]
        return EnvironmentMetadata(
            name=self._state.env_id, description=line or name, readme_content=text, version=version
        )

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


class TextEnvClient(EnvClient):
    """A client whose actions are texts and whose observations are ``TextObservation``.

    ``TextEnvClient(base_url="http://127.0.0.1:8000").sync()`` is a context manager with ``reset(seed=, options=)`` and
    ``step(text)``; without ``sync()`` they are coroutines.
    """

    def _step_payload(self, action: str | TextAction) -> dict[str, Any]:
        return {"text": action if isinstance(action, str) else action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult:
        reward, done = payload.get("reward"), bool(payload.get("done"))
        observation = TextObservation(**payload.get("observation", {}), reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> TextState:
        return TextState(**payload)


@checked
def make_app(
    env_id: str,
    *,
    sessions: Count = 64,
    session_timeout_s: Seconds | None = None,
    env_options: Mapping[str, Any] | None = None,
    wrappers: str | Sequence[PartSpec] = (),
) -> Any:
    """Return the server as a FastAPI application.

    Args:
        env_id: A Gymnasium id.
        sessions: Maximum number of connected clients, each with its own environment.
        session_timeout_s: Seconds after which an idle client loses its environment; ``None``: never.
        env_options: Options of the environment.
        wrappers: Wrappers of every environment, innermost first, as for ``make_env``.

    Raises:
        ConfigurationError: An argument is out of range or invalid, or the environment is not a text environment.
        UnknownEnvError: There is no such environment.
        UnknownNameError: There is no such wrapper.
    """
    factory = partial(OpenEnvServed, env_id, dict(env_options or {}), wrappers)
    factory().close()  # reports wrong options now, not for every client
    limits = ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=session_timeout_s)
    app = create_fastapi_app(factory, TextAction, TextObservation, concurrency_config=limits, state_cls=TextState)
    app.add_middleware(_Leaves)
    return app


def serve(
    env_id: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    announce: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve an environment until SIGINT or SIGTERM.

    Args:
        env_id: A Gymnasium id.
        host: Address to listen on.
        port: Port to listen on; 0 chooses a free port.
        announce: Called with the server's URL once its socket listens.
        **options: Options of ``make_app``.

    Raises:
        ConfigurationError: The server cannot listen on the address, or an option or ``RSTAR2_OTEL`` is invalid.
    """
    app = make_app(env_id, **options)
    logs = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    logs["loggers"][__name__] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    serve_app(app, host, port, announce=announce, log_config=logs, ws_max_size=_LARGEST_MESSAGE)


class _Leaves:
    """Middleware that logs one line when a client disconnects, however the connection ended.

    A close message, a disconnection and a broken connection end differently in OpenEnv's handler, and none of them
    needs a traceback.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except WebSocketDisconnect:
            pass
        finally:
            host, port = scope.get("client") or ("unknown", 0)
            _LOG.info("The client %s:%s closed the connection.", host, port)
