"""Claims about asking the hub: once, shortly, and a silent hub is an answer too."""

from __future__ import annotations

import socket
import time

import pytest
from small_hub import small_hub

from rstar2_env.core import hub

constants = pytest.importorskip("huggingface_hub.constants")


def test_a_name_that_is_there_gives_no_reason(monkeypatch):
    with small_hub(monkeypatch, "/api/models/owner/name") as asked:
        assert hub.ask_hub("models", "owner/name") is None
    assert asked == ["/api/models/owner/name"]


@pytest.mark.parametrize("answer", [401, 404])
def test_a_name_that_is_not_there_is_asked_for_once(monkeypatch, answer):
    with small_hub(monkeypatch, answer=answer) as asked:
        assert hub.ask_hub("datasets", "owner/nothing") == "the Hugging Face hub has no dataset of that name"
    assert len(asked) == 1


def test_a_hub_with_other_troubles_is_left_to_who_loads(monkeypatch):
    with small_hub(monkeypatch, answer=503):
        assert hub.ask_hub("models", "owner/name") is None


def test_a_hub_that_cannot_be_reached_or_is_silent_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "TIMEOUT_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert "cannot be asked" in hub.ask_hub("models", "owner/name")
        silent.listen()
        began = time.monotonic()
        assert "cannot be asked" in hub.ask_hub("models", "owner/name")
        assert time.monotonic() - began < 10


def test_nobody_is_asked_offline(monkeypatch):
    with small_hub(monkeypatch) as asked:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert "HF_HUB_OFFLINE" in hub.ask_hub("models", "owner/name")
    assert asked == []
