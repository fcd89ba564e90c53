"""A blocking client of OpenAI-compatible endpoints: chat completions and the Responses API.

Covered: several attempts with growing waits, ``Retry-After``, time limits. Not covered: streaming, token ids (the
engine ``vllm-server`` has them), event loops (call it in a thread).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.chat.reply import ChatReply, read_reply
from rstar2_env.core.net.chat.responses import PATHS, ChatApi, KeepReasoning, problem_of, read_response, request_of
from rstar2_env.core.net.http import Attempt, BlockingClient
from rstar2_env.core.net.retries import delay, failure
from rstar2_env.core.progress import waiting
from rstar2_env.core.secret import Secret, bearer
from rstar2_env.core.telemetry import endpoint_span

_NOT_FOUND = 404
_NAMED = re.compile(r"\bmodel\b|model_not_found|\bresponse\b|\bresp_", re.IGNORECASE)
"""Matches the text of a 404 answer that means an unknown model or an unknown earlier response, not a wrong address."""
_FILTERED = re.compile(r"content_filter|content_policy_violation|ResponsibleAIPolicyViolation")
_TOO_LONG = re.compile(r"context_length_exceeded|maximum context length|context (?:window|size|length)", re.IGNORECASE)


class RequestPace(Protocol):
    """Decides when a request may be sent, to keep within rate limits."""

    def wait(self) -> None:
        """Wait until a request may be sent."""
        ...

    def hold(self, seconds: float) -> None:
        """Delay requests by some seconds, as the server requested."""
        ...


class ChatEndpoint:
    """Client of one OpenAI-compatible endpoint; threads may share it, and it can be pickled.

    Args:
        base_url: The endpoint up to and including its version, such as ``http://127.0.0.1:8000/v1``.
        api_key: Sent as a bearer token; ``None`` sends none.
        timeout_s: Longest wait in seconds: for a connection, and then for the answer.
        retries: Maximum number of further attempts after a temporary failure: overload (408, 409, 425, 429, 5xx), or a
            lost connection.
        retry_timeouts: Whether a request that timed out is retried too.
        max_bytes: Maximum length of an answer, in bytes; a longer answer is an error.
        option: Name of the caller's option that holds ``base_url``, for error messages.
        pace: Decides when each attempt may be sent; ``None`` sends at once.
        api: The API of the endpoint.
        reasoning: How reasoning is kept between turns; only ``api="responses"`` can keep it.

    Attributes:
        url: The address that requests go to.

    Raises:
        ConfigurationError: ``base_url`` is not an address, or a number is out of its range.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | Secret | None = None,
        timeout_s: float = 600.0,
        retries: int = 6,
        retry_timeouts: bool = False,
        max_bytes: int = 64 << 20,
        option: str = "base_url",
        pace: RequestPace | None = None,
        api: ChatApi = "chat",
        reasoning: KeepReasoning = "none",
    ) -> None:
        _check_address(base_url, option)
        for name, path in PATHS.items():
            if str(base_url).rstrip("/").endswith(path):
                raise ConfigurationError(
                    f"{option} must not contain the path {path}, which api={name!r} adds: set api={name!r}, and give "
                    f"the address without this path; got {base_url!r}."
                )
        if not timeout_s > 0 or retries < 0:
            raise ConfigurationError(
                f"timeout_s must be positive, and retries must be 0 or more; got {timeout_s!r} and {retries!r}."
            )
        self._pace = pace
        self._api, self._reasoning = api, reasoning
        self.url = str(base_url).rstrip("/") + PATHS[api]
        self._retries = retries
        self._worth_another = {"lost", "passing", "late"} if retry_timeouts else {"lost", "passing"}
        headers = {"User-Agent": "rstar2-env", **bearer(api_key)}
        self._client = BlockingClient(timeout_s=timeout_s, headers=headers, max_bytes=max_bytes)

    def complete(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> str:
        """Request the next message of a conversation, and return its text.

        Args:
            messages: The conversation, each message with its ``role`` and ``content``.
            **fields: The other fields of the request: ``model`` (the name under which the endpoint serves it),
                ``temperature``, ``max_tokens``, …

        Returns:
            The text of the first choice; empty if the endpoint gives none.

        Raises:
            ServiceError: The endpoint did not answer, refused, or sent an invalid answer; the message names the
                endpoint and quotes its answer.
        """
        return self.read(self.ask(messages, **fields)).text

    def read(self, answer: Any) -> ChatReply:
        """Convert an answer of the endpoint to a ``ChatReply``.

        Raises:
            ServiceError: The answer does not have the format of the endpoint's API.
        """
        return (read_response if self._api == "responses" else read_reply)(answer, self.url)

    def ask(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> Any:
        """Request the next message of a conversation, and return the endpoint's whole answer.

        Args:
            messages: The conversation, in the endpoint's form.
            **fields: The other fields of the request.

        Returns:
            The endpoint's whole answer, as JSON.

        Raises:
            ServiceError: The endpoint did not answer, or refused; the message names the endpoint and quotes its answer.
        """
        with endpoint_span(self.url, fields) as span:
            answer = self._answer(self._body(messages, fields))
            if span.on:
                reply = self.read(answer)
                span.generation(reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.finish)
                if span.content:
                    shown = ((str(one.get("role")), str(one.get("content") or "")) for one in messages)
                    span.texts(shown, reply.text, reply.finish)
        return answer

    def _body(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
        if self._api == "responses":
            return request_of(messages, fields, self._reasoning)
        return {**fields, "messages": list(messages)}

    def _answer(self, body: Mapping[str, Any]) -> Any:
        """Send a request until it is answered, or its attempts are used up."""
        attempts = 0
        with waiting(self.url) as report:
            while True:
                attempts += 1
                if self._pace is not None:
                    self._pace.wait()
                attempt = self._client.attempt("POST", self.url, body)
                if self._api == "responses" and (failed := problem_of(attempt.answer)) is not None:
                    attempt = Attempt(problem=failed[0], cause=failed[1], status=attempt.status, text=attempt.text)
                if attempt.problem is None:
                    return attempt.answer
                if attempt.cause not in self._worth_another or attempts > self._retries:
                    message = failure(f"POST {self.url}", attempt.problem, attempts)
                    if attempt.status == _NOT_FOUND and not _NAMED.search(attempt.text):
                        (other,) = PATHS.keys() - {self._api}
                        message += f" (if the endpoint offers only the other API, set api={other!r})"
                    raise ServiceError(message, cause=_refusal(attempt))
                report(f"{attempt.problem}; attempt {attempts + 1} of {self._retries + 1}")
                if attempt.wait_s is None:
                    time.sleep(delay(attempts))
                elif self._pace is None:
                    time.sleep(attempt.wait_s)
                else:
                    self._pace.hold(attempt.wait_s)


def _check_address(base_url: object, option: str) -> None:
    if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", str(base_url)):
        raise ConfigurationError(f"{option} must be an address such as http://127.0.0.1:8000/v1, not {base_url!r}.")


def served_model(
    base_url: str, *, api_key: str | Secret | None = None, timeout_s: float = 30.0, option: str = "base_url"
) -> str:
    """Return the name of the only model that an endpoint serves.

    Args:
        base_url: The endpoint up to and including its version.
        api_key: Sent as a bearer token; ``None`` sends none.
        timeout_s: Longest wait for the answer, in seconds.
        option: Name of the option that gives the address, for error messages.

    Raises:
        ConfigurationError: ``base_url`` is not an address, or the endpoint does not serve exactly one model; then the
            message lists the first models that it serves.
        ServiceError: The endpoint did not answer, or refused.
    """
    _check_address(base_url, option)
    url = f"{base_url.rstrip('/')}/models"
    attempt = BlockingClient(timeout_s=timeout_s, headers=bearer(api_key), max_bytes=16 << 20).attempt("GET", url, None)
    if attempt.problem is not None:
        raise ServiceError(failure(f"GET {url}", attempt.problem, 1))
    listed = attempt.answer.get("data") if isinstance(attempt.answer, Mapping) else None
    rows = listed if isinstance(listed, Sequence) else ()
    names = [str(one["id"]) for one in rows if isinstance(one, Mapping) and "id" in one]
    if len(names) == 1:
        return names[0]
    shown = ", ".join([*names[:12], *(["…"] if len(names) > 12 else [])])
    raise ConfigurationError(
        f"The server {url} offers {len(names)} models{f' ({shown})' if names else ''}: name the model to use.",
        option="model",
        value="NAME",
    )


def _refusal(attempt: Attempt) -> str:
    """Return why the endpoint refused a conversation, as in ``ServiceError.cause``; empty for any other failure."""
    if attempt.status != 400:
        return ""
    return "refused" if _FILTERED.search(attempt.text) else "too_long" if _TOO_LONG.search(attempt.text) else ""
