"""The engine sends to each recorded version of vLLM what was recorded, and reads its answers as it read them then.

A field or a route that changes in this package fails here without vLLM; a version of vLLM that changes one fails where
it is recorded (tests/support/recorded_vllm.py).
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from recorded_vllm import FOLDER, listening, model_in, played, replayer

from rstar2_env.core.errors import ConfigurationError, Rstar2Error

RECORDINGS = sorted(FOLDER.glob("vllm-*.json"))


@pytest.fixture(params=RECORDINGS, ids=lambda file: file.stem)
def recording(request: pytest.FixtureRequest) -> Any:
    return json.loads(request.param.read_text())


def test_there_are_recordings() -> None:
    assert RECORDINGS


def test_the_engine_asks_what_was_recorded_and_reads_what_it_read(recording: Any, tmp_path: Path) -> None:
    with listening(replayer(recording["answers"])) as url:
        assert played(url, tmp_path / "weights", model_in(tmp_path)) == recording["found"]


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("POST /v1/completions", lambda text: text.replace('"token_ids"', '"ids"')),
        ("POST /v1/completions", lambda text: text.replace('"token_logprobs"', '"logprob_list"')),
        ("GET /v1/models", lambda text: text.replace('"max_model_len"', '"context"')),
        ("GET /version", lambda text: '{"version": "0.27.0"}'),
        ("GET /metrics", lambda text: text.replace("cache_config_info", "cache_info")),
    ],
)
def test_an_answer_that_loses_a_field_is_noticed(recording: Any, tmp_path: Path, path: str, change: Any) -> None:
    answers = copy.deepcopy(recording["answers"])
    for key, found in answers.items():
        if key.startswith(path):
            answers[key] = [[status, kind, change(text)] for status, kind, text in found]
    with listening(replayer(answers)) as url, pytest.raises((Rstar2Error, ConfigurationError)):
        played(url, tmp_path / "weights", model_in(tmp_path))
