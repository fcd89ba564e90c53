"""Environment that plays any OpenEnv (``openenv`` 0.10) server, by its address.

Covered: OpenEnv servers for which a turn is a text field of the action, or the whole action as JSON; servers of this
package, which return the whole contract (statuses, ``end``, ``truncated``). Not covered: the start of a server or a
container, and a server's MCP tools; for both, use OpenEnv's own client. OpenEnv's ``StepResult`` has a single flag
``done``, so for a server of another package every end is ``answered``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from rstar2_env.adapters.base.foreign import End, ForeignEnv, Opening, TurnReply
from rstar2_env.core.errors import ConfigurationError, MissingExtraError, ServiceError
from rstar2_env.core.net.http import blocking_client, sent
from rstar2_env.core.options.declare import Count, Seconds, checked

try:
    from openenv.core.generic_client import GenericEnvClient
except ImportError as error:
    raise MissingExtraError("openenv", "The adapter 'openenv_client'") from error

_OURS = frozenset({"text", "terminated", "truncated", "info"})
"""Fields of an observation that identify a server of this package."""
_PLUMBING = frozenset({"reward", "done", "metadata"})


class OpenEnvEnv(ForeignEnv):
    """An environment behind an OpenEnv server.

    The server receives the problem's number as its ``seed``. If the server cannot be reached at ``reset``, an error is
    raised; if the connection is lost during an episode, the episode is ``unavailable``.

    Args:
        url: Address of the server ("http://127.0.0.1:8000").
        field: Field of the action that receives the turn's text; by default the only field that the server's schema
            requires. ``"*"``: the turn itself is the action, as a JSON object; this is the default if several fields
            are required.
        show: Field of the observation to show to the policy. By default the field ``text``, else the only field with a
            text, else the whole observation as JSON.
        reset_options: Further arguments of the server's ``reset``.
        timeout_s: Maximum wait for an answer, in seconds.
        max_turns: Maximum number of turns in an episode.
        full_reward: Minimum return at which an episode counts as solved, if the server does not report whether
            it was solved.

    Raises:
        ServiceError: The server does not answer.
    """

    held: ClassVar[tuple[str, ...]] = ("_client",)

    @checked
    def __init__(
        self,
        *,
        url: str,
        field: str | None = None,
        show: str | None = None,
        reset_options: Mapping[str, Any] | None = None,
        timeout_s: Seconds = 60.0,
        max_turns: Count = 50,
        full_reward: float = 1.0,
    ) -> None:
        self._url, self._timeout_s = url.rstrip("/"), timeout_s
        self._reset, self._show = dict(reset_options or {}), show
        self._client: Any = None
        super().__init__(f"openenv/{self._name_of_server()}", max_turns=max_turns, full_reward=full_reward)
        self._field = self._required() if field is None else None if field == "*" else field

    def begin(self, number: int) -> Opening:
        """Reset the server's environment."""
        if self._client is None:
            self._client = GenericEnvClient(base_url=self._url, message_timeout_s=self._timeout_s).sync()
        try:
            seen = self._client.reset(seed=number, **self._reset).observation
        except Exception as error:
            self._leave()
            raise ServiceError(f"The server {self._url} could not start an episode: {error}", cause="lost") from error
        if set(seen) >= _OURS:
            info = dict(seen["info"])
            info["served_problem_id"] = info.pop("problem_id", "")
            return Opening(seen["text"], info.pop("system", ""), info)
        return Opening(self._words(seen), info={"observation": seen})

    def play(self, turn: str) -> TurnReply:
        """Send the turn as an action."""
        try:
            made = self._client.step(self._action(turn))
        except _NotAnActionError as error:
            return TurnReply(str(error), info={"action": "malformed"})
        except Exception:
            self._leave()
            raise
        seen = made.observation
        reward = float(made.reward or 0.0)
        if not set(seen) >= _OURS:
            over: End | None = "answered" if made.done else None
            return TurnReply(
                self._words(seen), reward, over, info={"observation": seen, "metadata": made.metadata or {}}
            )
        info = dict(seen["info"])
        end = info.pop("end", "answered" if seen["terminated"] else "turns") if made.done else None
        return TurnReply.from_info(seen["text"], reward, end, info)

    def close(self) -> None:
        """Disconnect from the server."""
        super().close()
        self._leave()

    def _leave(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            client.close()

    def _action(self, turn: str) -> dict[str, Any]:
        if self._field is not None:
            return {self._field: turn}
        text = turn.strip()
        if text.startswith("```") and text.endswith("```"):
            text = text.partition("\n")[2].rpartition("```")[0]
        try:
            action = json.loads(text)
        except ValueError as error:
            raise _NotAnActionError(f"The turn must be an action, written as a JSON object: {error}.") from None
        if not isinstance(action, dict):
            raise _NotAnActionError("The turn must be an action, written as a JSON object.")
        return action

    def _words(self, seen: Mapping[str, Any]) -> str:
        if self._show is not None:
            if self._show not in seen:
                known = ", ".join(sorted(seen))
                raise ConfigurationError(
                    f"The option `show` names the field {self._show!r}, but the observation has only the fields "
                    f"{known}."
                )
            return _text(seen[self._show])
        texts = [name for name, value in seen.items() if isinstance(value, str) and name not in _PLUMBING]
        if "text" in texts or len(texts) == 1:
            return str(seen["text" if "text" in texts else texts[0]])
        return _text({name: value for name, value in seen.items() if name not in _PLUMBING})

    def _required(self) -> str | None:
        schema = self._asked("schema").get("action", {})
        required = schema.get("required", [])
        fields = required or [name for name in schema.get("properties", {}) if name not in _PLUMBING]
        return str(fields[0]) if len(fields) == 1 else None

    def _name_of_server(self) -> str:
        return str(self._asked("metadata").get("name", "environment")).replace(" ", "_")

    def _asked(self, path: str) -> dict[str, Any]:
        with blocking_client(timeout_s=self._timeout_s) as client:
            attempt = sent(client, "GET", f"{self._url}/{path}")
        if attempt.problem is not None:
            raise ServiceError(f"The server {self._url}/{path} did not answer: {attempt.problem}", cause="lost")
        answer: dict[str, Any] = attempt.answer
        return answer


class _NotAnActionError(Exception):
    """The turn is not a valid action of the server; the policy receives the message."""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
