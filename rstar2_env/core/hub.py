"""Asks the Hugging Face hub one short question before a library asks it many: is there such a model, such a data set?

The libraries of the hub try again and again for half a minute where a name has a typo or there is no network.
"""

from __future__ import annotations

from typing import Literal

TIMEOUT_S = 5.0
"""Seconds that the hub has for its answer."""


def ask_hub(kind: Literal["models", "datasets"], name: str) -> str | None:
    """Why the hub does not give what has that name; ``None`` where it does, or where only loading it can tell.

    Args:
        kind: What it is.
        name: ``owner/name``, or a name alone.
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
        # It answers 401 for what is private and for what is not there.
        there = error.code not in (401, 404)
        return None if there else f"the Hugging Face hub has no {kind.removesuffix('s')} of that name"
    except (OSError, ValueError) as error:
        return f"the Hugging Face hub cannot be asked ({getattr(error, 'reason', error)})"
