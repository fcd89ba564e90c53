"""One client for a process: shared, pickled as its options, with a cache that is shared between processes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from flaky_server import flaky

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.net.chat.client import ClientOptions, shared_client
from rstar2_env.core.net.chat.limits import ChatLimits

HELLO = [{"role": "user", "content": "hello"}]


def completion(*_: Any) -> tuple[int, Any]:
    return 200, {"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}


def test_the_same_options_are_the_same_client_while_someone_has_it() -> None:
    options = ClientOptions("http://127.0.0.1:1/v1", limits=ChatLimits(max_tokens=5))
    client = shared_client(options)
    assert shared_client(ClientOptions("http://127.0.0.1:1/v1", limits=ChatLimits(max_tokens=5))) is client
    assert shared_client(ClientOptions("http://127.0.0.1:1/v1")) is not client
    client.meter.tokens = 3
    del client
    assert shared_client(options).meter.tokens == 0


def test_the_key_stands_in_no_text_of_the_options() -> None:
    assert "secret" not in repr(ClientOptions("http://127.0.0.1:1/v1", "secret"))


def test_it_travels_as_its_options(tmp_path: Path) -> None:
    with flaky(completion) as server:
        client = shared_client(ClientOptions(f"{server.address}/v1", cache=tmp_path / "deep" / "cache"))
        twin = pickle.loads(pickle.dumps(client))
        assert not client.ask(HELLO, model="m").cached
        assert twin.ask(HELLO, model="m").cached
        assert not twin.ask(HELLO, model="n").cached
        assert not twin.ask(HELLO, model="m", sample=1).cached
    assert client.meter.tokens == 9, "what the cache answers costs nothing"


def test_a_file_of_something_else_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be looked at " * 20)
    with pytest.raises(ConfigurationError, match=r"notes\.txt cannot be used as a cache of a model's replies"):
        shared_client(ClientOptions("http://127.0.0.1:1/v1", cache=tmp_path / "notes.txt"))
