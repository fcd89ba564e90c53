"""Asks the Hugging Face hub, before a library does, whether a model or a data set exists.

The libraries of the hub retry for half a minute where a name has a typo or there is no network.
"""

from __future__ import annotations

from typing import Literal

TIMEOUT_S = 5.0
"""Seconds to wait for the hub's answer."""


def ask_hub(kind: Literal["models", "datasets"], name: str) -> str | None:
    """Why the hub does not have a model or data set; ``None`` where it has, or where only loading it can tell.

    Args:
        kind: Whether it is a model or a data set.
        name: ``owner/name``, or a plain name.
    """
    # Reading problems of a file must not load an HTTP client.
    import urllib.error
    import urllib.request

    try:
        from huggingface_hub import constants, get_token
    except ImportError:
        return None  # What wants to load it says which extra is missing.
    if constants.HF_HUB_OFFLINE:
        return "the Hugging Face hub is not asked (HF_HUB_OFFLINE)"
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{constants.ENDPOINT}/api/{kind}/{name}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            return None
    except urllib.error.HTTPError as error:
        # The hub answers 401 both for private and for missing repositories.
        there = error.code not in (401, 404)
        return None if there else f"the Hugging Face hub has no {kind.removesuffix('s')} of that name"
    except (OSError, ValueError) as error:
        return f"the Hugging Face hub cannot be asked ({getattr(error, 'reason', error)})"
