"""Asks the Hugging Face hub, before a library does: whether a model or a data set exists, and what else it answers.

The libraries of the hub retry for half a minute where a name has a typo or there is no network.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from rstar2_env.core.errors import ServiceError

TIMEOUT_S = 5.0
"""Seconds to wait for the hub's answer."""


def ask_hub(kind: Literal["models", "datasets"], name: str) -> str | None:
    """Why the hub does not have a model or data set; ``None`` where it has, or where only loading it can tell.

    Args:
        kind: Whether it is a model or a data set.
        name: ``owner/name``, or a plain name.
    """
    try:
        from huggingface_hub import constants, get_token
    except ImportError:
        return None  # What wants to load it says which extra is missing.
    if constants.HF_HUB_OFFLINE:
        return "the Hugging Face hub is not asked (HF_HUB_OFFLINE)"
    try:
        status, _ = _get(f"{constants.ENDPOINT}/api/{kind}/{name}", get_token())
    except _SilentError as error:
        return f"the Hugging Face hub cannot be asked ({error})"
    # The hub answers 401 both for private and for missing repositories.
    there = status not in (401, 404)
    return None if there else f"the Hugging Face hub has no {kind.removesuffix('s')} of that name"


def hub_commit(kind: Literal["models", "datasets"], name: str, revision: str | None = None) -> str | None:
    """The commit that a branch or tag of the hub stands for; ``None`` where the hub cannot be asked.

    Args:
        kind: Whether it is a model or a data set.
        name: ``owner/name``.
        revision: The branch or tag; ``None`` for ``main``.
    """
    try:
        from huggingface_hub import constants, get_token
    except ImportError:
        return None
    if constants.HF_HUB_OFFLINE:
        return None
    try:
        _, found = hub_answer(f"/api/{kind}/{name}/revision/{revision or 'main'}", get_token())
    except ServiceError:
        return None
    commit = found.get("sha") if isinstance(found, dict) else None
    return commit if isinstance(commit, str) and commit else None


def hub_answer(path: str, token: str | None = None) -> tuple[int, Any]:
    """What the hub answers to a GET.

    Args:
        path: Of its API, such as ``/api/whoami-v2``.
        token: Sent along; it is in no message.

    Returns:
        The status, and the parsed JSON; ``None`` where it is none.

    Raises:
        ServiceError: The hub cannot be reached, or answered nothing in time.
    """
    from huggingface_hub import constants

    try:
        status, text = _get(f"{constants.ENDPOINT}{path}", token)
    except _SilentError as error:
        raise ServiceError(f"The hub {constants.ENDPOINT} cannot be reached: {error}.", cause="lost") from error
    try:
        return status, json.loads(text)
    except ValueError:
        return status, None


class _SilentError(Exception):
    """Nothing came that is an answer; the message says why."""


def _get(url: str, token: str | None) -> tuple[int, bytes]:
    """Status and body of a GET; the token is sent only to the original host, not after redirects to others.

    Raises:
        _SilentError: The host cannot be reached, or its answer is not HTTP.
    """
    import httpx  # here, since reading problems from a file must not load an HTTP client

    from rstar2_env.core.net.http import blocking_client

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with blocking_client(timeout_s=TIMEOUT_S) as client:
            answer = client.get(url, headers=headers, follow_redirects=True)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _SilentError(str(error) or type(error).__name__) from error
    return answer.status_code, answer.content if answer.is_success else b""
