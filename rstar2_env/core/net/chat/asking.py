"""Asks a language model for a judgement: options of its endpoint, delimiters around untrusted texts, one-word verdicts.

Every judge of the package uses this module: judges of chains of thought, rewards, steps and answers. Not covered: the
questions that judges ask, and a server for the model.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.net.chat.responses import ChatApi
from rstar2_env.core.options.declare import CheckedOptions, Count, Seconds, option
from rstar2_env.core.secret import Secret, secret_of

if TYPE_CHECKING:
    from rstar2_env.core.net.chat_endpoint import ChatEndpoint

_MAX_REPLY_BYTES = 1 << 20
_VERDICT = re.compile(r"\b(IN)?CORRECT\b")


@dataclass(frozen=True)
class AskedModel(CheckedOptions):
    """A model behind an OpenAI-compatible endpoint: its options, and requests to it.

    Attributes:
        url: Base of the API, such as ``http://localhost:8000/v1``.
        model: Name of the model at the endpoint.
        api_key_env: Environment variable that holds the API key, if the endpoint requires one.
        temperature: Sampling temperature.
        max_tokens: Maximum length of a reply, in tokens.
        timeout_s: Timeout of one request, in seconds.
        retries: Maximum number of further attempts for one reply.
        api: API of the endpoint: ``chat`` (chat completions) or ``responses``.
    """

    url: str
    model: str
    api_key_env: str = ""
    temperature: float = option(0.0, least=0)
    max_tokens: Count = 1024
    timeout_s: Seconds = 120.0
    retries: int = option(4, least=0)
    api: ChatApi = "chat"

    def __post_init__(self) -> None:
        """Check the options and the address.

        Raises:
            ConfigurationError: An option is out of its range, the URL is invalid, or the key is not set.
        """
        super().__post_init__()
        _ = self.endpoint

    @functools.cached_property
    def endpoint(self) -> ChatEndpoint:
        """The HTTP client of the model's endpoint."""
        key = key_from(self.api_key_env)
        return judge_endpoint(self.url, key, timeout_s=self.timeout_s, retries=self.retries, api=self.api)

    def ask(self, content: str, system: str = "") -> str:
        """Send a message to the model, and return its reply.

        Args:
            content: The user's message.
            system: The system's message; empty sends none.

        Raises:
            ServiceError: The endpoint did not answer.
        """
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": content})
        fields = {"model": self.model, "temperature": self.temperature, "max_tokens": self.max_tokens}
        return self.endpoint.complete(messages, **fields)


def judge_endpoint(
    url: str, api_key: str | Secret | None, *, timeout_s: float, retries: int, api: ChatApi = "chat"
) -> ChatEndpoint:
    """Return a client for a judge's endpoint; the client also retries requests that timed out.

    Raises:
        ConfigurationError: The URL is invalid.
    """
    from rstar2_env.core.net.chat_endpoint import ChatEndpoint  # here, since listing parts needs no HTTP client

    return ChatEndpoint(
        url,
        api_key=api_key,
        timeout_s=timeout_s,
        retries=retries,
        retry_timeouts=True,
        max_bytes=_MAX_REPLY_BYTES,
        option="url",
        api=api,
    )


def key_from(api_key_env: str) -> Secret | None:
    """Return the API key from an environment variable; ``None`` if ``api_key_env`` is empty.

    Raises:
        ConfigurationError: The variable is not set.
    """
    if not api_key_env:
        return None
    if api_key_env not in os.environ:
        raise ConfigurationError(
            f"The option `api_key_env` names the environment variable {api_key_env}, which is not set: set it "
            "to the API key."
        )
    return secret_of(os.environ[api_key_env])


def marked(parts: Sequence[tuple[str, str]]) -> str:
    """Return untrusted texts for a judge to read, each between random delimiters, which the texts cannot forge.

    Args:
        parts: Name and text of each untrusted text.
    """
    mark = secrets.token_hex(8)
    return "\n".join(f"<{mark} {name}>\n{text}\n</{mark}>" for name, text in parts)


def read_verdict(reply: str) -> bool | None:
    """Read the last verdict in a judge's reply: ``True`` for CORRECT, ``False`` for INCORRECT, ``None`` without one.

    The last one counts, since a judge may mention both words while it reasons.
    """
    verdicts = _VERDICT.findall(reply)
    return None if not verdicts else verdicts[-1] != "IN"
