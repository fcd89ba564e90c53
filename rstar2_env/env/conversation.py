"""The conversation with an endpoint, as text or with the endpoint's native tool calls.

An environment reads and writes text. ``Conversation`` converts native calls to text in the environment's dialect, and
the results in observations to messages with the role ``tool``. Not covered: how requests are sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.errors import ConfigurationError, UnusableReplyError
from rstar2_env.core.net.chat.reply import ChatReply, NativeCall
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.tools import ToolResult

_ELSEWHERE = "(This result is in the message above.)"


class Conversation:
    """One conversation with an endpoint.

    Args:
        dialect: The dialect in which the environment reads calls and shows results.
        native: Whether to offer the tools as native tools. If not, native calls in replies are converted to text.

    Attributes:
        messages: The messages so far, in the form in which a request contains them.
        fields: Further fields of a request: ``tools`` with the schemas if calls are native.

    Raises:
        ConfigurationError: The dialect cannot write every call.
    """

    def __init__(self, dialect: Dialect | str, *, native: bool) -> None:
        self._dialect, self._native = make_dialect(dialect), native
        if native:
            try:
                self._dialect.format_call("any_tool", {"argument": 1})
            except ValueError as error:
                raise ConfigurationError(
                    f"The dialect {self._dialect.name!r} cannot express every tool call that a server may return: "
                    "use the dialect 'rstar2', or tools=text."
                ) from error
        self.messages: list[dict[str, Any]] = []
        self.fields: dict[str, Any] = {}
        self._pending: tuple[NativeCall, ...] = ()

    def begin(self, info: Mapping[str, Any]) -> None:
        """Start a new conversation.

        Args:
            info: The ``info`` that the environment's ``reset`` returned.
        """
        system, tools = str(info.get("system") or ""), list(info.get("tools") or ())
        if self._native and tools and system:
            # The endpoint describes the tools to the model in its own way.
            system = self._dialect.system(())
        self.messages = [{"role": "system", "content": system}] if system else []
        self.fields = {"tools": tools} if self._native and tools else {}
        self._pending = ()

    def add_observation(self, text: str, role: str) -> None:
        """Add an observation: a message with the given role or, after native calls, one ``tool`` message per call."""
        calls, self._pending = self._pending, ()
        if not calls:
            self.messages.append({"role": role, "content": text})
            return
        for call, result in zip(calls, self._results(text, len(calls)), strict=True):
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def add_reply(self, reply: ChatReply) -> str:
        """Add a reply of the model.

        Returns:
            The reply as text, with its native calls written in the dialect: the action for ``env.step``.

        Raises:
            UnusableReplyError: The reply has no text and only calls that the dialect cannot write.
        """
        turn = "\n".join(part for part in (reply.text, *map(self._written, reply.calls)) if part)
        if not turn.strip():
            names = ", ".join(call.name for call in reply.calls)
            raise UnusableReplyError(
                "no_text", f"The reply has no text and only native tool calls ({names}) that the dialect cannot write."
            )
        # A call that is played as text gets no output, and a server refuses the item of a call without output.
        kept = {"items": reply.items, "response_id": reply.response_id} if self._native or not reply.calls else {}
        kept = {name: value for name, value in kept.items() if value}
        if self._native and reply.calls:
            self._pending = reply.calls
            calls = [call.record() for call in reply.calls]
            self.messages.append({"role": "assistant", "content": reply.text or None, "tool_calls": calls, **kept})
        else:
            self.messages.append({"role": "assistant", "content": turn, **kept})
        return turn

    def _written(self, call: NativeCall) -> str:
        """Write a native call in the dialect, or return "" if the dialect cannot write it.

        If the arguments are not a JSON object, write a call that the dialect also rejects. If that is impossible, pass
        the arguments as one text, under the name ``arguments``.
        """
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError:
            arguments = None
        try:
            if isinstance(arguments, Mapping):
                return self._dialect.format_call(call.name, arguments)
            broken = self._dialect.format_call(call.name, {}).replace("{}", call.arguments)
            read = self._dialect.calls(broken)
            if len(read) == 1 and read[0].problem is not None:
                return broken
            return self._dialect.format_call(call.name, {"arguments": call.arguments})
        except ValueError:
            return ""

    def _results(self, text: str, count: int) -> list[str]:
        """Split an observation into one text per call.

        If that fails, the first text is the whole observation, and the other texts only refer to the first.
        """
        before, _, after = self._dialect.results([ToolResult("", ToolStatus.OK, "\0")]).partition("\0")
        if text.startswith(before) and text.endswith(after):
            parts = text[len(before) : len(text) - len(after)].split(f"{after}\n{before}")
            if len(parts) == count:
                return parts
        return [text, *[_ELSEWHERE] * (count - 1)]
