"""Checks with the Hugging Face hub whether a model or data set exists, before a library loads it.

The hub's own libraries retry for half a minute if a name has a typo or there is no network.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from rstar2_env.core.errors import ServiceError
from rstar2_env.core.secret import Secret, bearer, secret_of

TIMEOUT_S = 5.0
"""Seconds to wait for the hub's answer."""


def ask_hub(kind: Literal["models", "datasets"], name: str) -> str | None:
    """Return why a model or data set is not available on the hub; ``None`` if no such reason was found.

    Args:
        kind: Whether ``name`` is a model or a data set.
        name: ``owner/name``, or a plain name.
    """
    try:
        from huggingface_hub import constants, get_token
    except ImportError:
        return None  # the loader reports the missing extra
    if constants.HF_HUB_OFFLINE:
        return "the Hugging Face hub is not queried (HF_HUB_OFFLINE is set)"
    try:
        status, _ = _get(f"{constants.ENDPOINT}/api/{kind}/{name}", secret_of(get_token()))
    except _SilentError as error:
        return f"the Hugging Face hub cannot be queried ({error})"
    # The hub answers 401 both for private and for missing repositories.
    there = status not in (401, 404)
    return None if there else f"the Hugging Face hub has no {kind.removesuffix('s')} of that name"


def hub_commit(kind: Literal["models", "datasets"], name: str, revision: str | None = None) -> str | None:
    """Return the commit hash of a branch or tag on the hub; ``None`` if the hub does not provide it.

    Args:
        kind: Whether ``name`` is a model or a data set.
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
        _, found = hub_answer(f"/api/{kind}/{name}/revision/{revision or 'main'}", secret_of(get_token()))
    except ServiceError:
        return None
    commit = found.get("sha") if isinstance(found, dict) else None
    return commit if isinstance(commit, str) and commit else None


def hub_answer(path: str, token: Secret | None = None) -> tuple[int, Any]:
    """Send a GET to the hub and return its answer.

    Args:
        path: Path in the hub's API, such as ``/api/whoami-v2``.
        token: Sent with the request; messages never contain it.

    Returns:
        The status, and the parsed JSON; ``None`` if the answer is not JSON.

    Raises:
        ServiceError: The hub cannot be reached, or did not answer in time.
    """
    from huggingface_hub import constants

    try:
        status, text = _get(f"{constants.ENDPOINT}{path}", token)
    except _SilentError as error:
        raise ServiceError(
            f"The Hugging Face hub at {constants.ENDPOINT} cannot be reached: {error}.", cause="lost"
        ) from error
    try:
        return status, json.loads(text)
    except ValueError:
        return status, None


class _SilentError(Exception):
    """The hub did not answer; the message has the reason."""


def _get(url: str, token: Secret | None) -> tuple[int, bytes]:
    """Status and body of a GET; the token is sent only to the original host, not after redirects to other hosts.

    Raises:
        _SilentError: The host cannot be reached, or its answer is not HTTP.
    """
    import httpx  # here, since reading problems from a file must not load an HTTP client

    from rstar2_env.core.net.http import blocking_client

    try:
        with blocking_client(timeout_s=TIMEOUT_S) as client:
            answer = client.get(url, headers=bearer(token), follow_redirects=True)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _SilentError(str(error) or type(error).__name__) from error
    return answer.status_code, answer.content if answer.is_success else b""
