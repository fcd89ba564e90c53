"""The conversation with an endpoint, as text or with the endpoint's own tool calls.

An environment reads and writes text. Here native calls become text in its dialect, and the results that it shows become
messages of the role ``tool``. Not covered: sending anything.
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

_ELSEWHERE = "(This result stands in the message above.)"


class Conversation:
    """One conversation.

    Args:
        dialect: How the environment reads calls and shows results.
        native: Whether the conversation is led with native calls; if not, those that come anyway are played as text.

    Attributes:
        messages: The conversation, as requests have it.
        fields: What a request has beside it.

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
                    f"The dialect {self._dialect.name!r} cannot write every call that an endpoint may make: play the "
                    "environment in the dialect 'rstar2', or with tools=text."
                ) from error
        self.messages: list[dict[str, Any]] = []
        self.fields: dict[str, Any] = {}
        self._pending: tuple[NativeCall, ...] = ()

    def begin(self, info: Mapping[str, Any]) -> None:
        """Forget the conversation before, and begin one.

        Args:
            info: What the environment's ``reset`` returned.
        """
        system, tools = str(info.get("system") or ""), list(info.get("tools") or ())
        if self._native and tools and system:
            # The endpoint describes the tools to the model in its own way.
            system = self._dialect.system(())
        self.messages = [{"role": "system", "content": system}] if system else []
        self.fields = {"tools": tools} if self._native and tools else {}
        self._pending = ()

    def hear(self, text: str, role: str) -> None:
        """Add what the environment showed."""
        calls, self._pending = self._pending, ()
        if not calls:
            self.messages.append({"role": role, "content": text})
            return
        for call, result in zip(calls, self._results(text, len(calls)), strict=True):
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def say(self, reply: ChatReply) -> str:
        """Add a reply.

        Returns:
            The turn as the environment reads it.

        Raises:
            UnusableReplyError: It is a call that the dialect cannot write, and no text.
        """
        turn = "\n".join(part for part in (reply.text, *map(self._written, reply.calls)) if part)
        if not turn.strip():
            names = ", ".join(call.name for call in reply.calls)
            raise UnusableReplyError(
                "no_text", f"The reply has no text but native calls ({names}), which its dialect cannot write."
            )
        if self._native and reply.calls:
            self._pending = reply.calls
            calls = [call.record() for call in reply.calls]
            self.messages.append({"role": "assistant", "content": reply.text or None, "tool_calls": calls})
        else:
            self.messages.append({"role": "assistant", "content": turn})
        return turn

    def _written(self, call: NativeCall) -> str:
        """A call in the dialect; one whose arguments are no JSON object as one that does not parse there either."""
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
        """The results of one turn's calls, apart."""
        before, _, after = self._dialect.results([ToolResult("", ToolStatus.OK, "\0")]).partition("\0")
        if text.startswith(before) and text.endswith(after):
            parts = text[len(before) : len(text) - len(after)].split(f"{after}\n{before}")
            if len(parts) == count:
                return parts
        return [text, *[_ELSEWHERE] * (count - 1)]
