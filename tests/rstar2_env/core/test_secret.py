"""A secret is shown nowhere, survives pickling, and leaves options and texts before they are written."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.core.secret import SHOWN, Secret, hidden, redacted, secret_of
from rstar2_env.sandbox.remote.options import RemoteOptions

VALUE = "planted-9b1e77"


def test_a_secret_shows_itself_only_when_it_is_asked_to() -> None:
    secret = Secret(VALUE)
    assert VALUE not in f"{secret} {secret!r} {[secret]} {jsonable({'a': secret})}"
    assert secret.reveal() == VALUE
    assert pickle.loads(pickle.dumps(secret)) == secret


@pytest.mark.parametrize(
    "options",
    [
        {"token": VALUE},
        {"env": {"sandbox": {"provider": "remote", "token": VALUE, "workers": 2}}},
        {"agents": [{"api_key": VALUE}]},
        {"judge": f"model:url=http://127.0.0.1:1/v1,api_key={VALUE}"},
        {"words": '--set env.sandbox={"token": "' + VALUE + '"}'},
    ],
)
def test_options_lose_their_secrets(options: dict[str, object]) -> None:
    written = json.dumps(redacted(options))
    assert VALUE not in written
    assert SHOWN in written


def test_other_options_stay_as_they_are() -> None:
    options = {"max_tokens": 8, "token": None, "stop": ["token"], "text": "a token, max_token=3", "n": [1.5, True]}
    assert redacted(options) == options


def test_a_text_that_quotes_a_secret_loses_it() -> None:
    Secret("sk-quoted-5521")
    assert hidden("wrong key sk-quoted-5521.") == "wrong key ***."


def test_a_redacted_option_is_read_as_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSTAR2_SANDBOX_TOKEN", VALUE)
    options = RemoteOptions(url="http://127.0.0.1:1", token=SHOWN)
    assert options.token == Secret(VALUE)
    assert VALUE not in repr(options)
    assert secret_of("") is None


def test_a_run_holds_no_secret(tmp_path: Path) -> None:
    secret = Secret("sk-event-31337")
    writer = RunWriter(tmp_path / "run")
    writer.begin({"rollout": {"env_options": {"sandbox": {"token": VALUE, "key": secret}}}})
    writer.event("failed", 1, error=f"The server says: {secret.reveal()} is wrong.")
    text = "".join(file.read_text() for file in (tmp_path / "run").rglob("*") if file.is_file())
    assert SHOWN in text
    assert VALUE not in text
    assert secret.reveal() not in text


def test_a_secret_that_contains_another_is_hidden_whole() -> None:
    short, long = Secret("inner-one"), Secret("around-inner-one-too")
    assert hidden(f"{long.reveal()} {short.reveal()}") == "*** ***"
