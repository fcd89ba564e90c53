"""The engine sends to each recorded version of vLLM what was recorded, and reads its answers as it read them then.

A field or a route that changes in this package fails here without vLLM; a version of vLLM that changes one fails where
it is recorded (tests/support/recorded_vllm.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_vllm import EARLIER, FOLDER, VERSIONS, listening, model_in, played, replayer

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.rollout import VllmServerEngine


def recording_of(version: str) -> Any:
    return json.loads((FOLDER / f"vllm-{version}.json").read_text())


def changed(path: str, change: Callable[[str], str]) -> Any:
    """The answers of the newest recording, with those to a request changed."""
    answers = recording_of(VERSIONS[-1])["answers"]
    for key, found in answers.items():
        if key.startswith(path):
            answers[key] = [[status, kind, change(text)] for status, kind, text in found]
    return answers


def test_the_tested_versions_and_one_without_the_group_are_recorded() -> None:
    assert sorted(file.stem for file in FOLDER.glob("vllm-*.json")) == [f"vllm-{each}" for each in (EARLIER, *VERSIONS)]


@pytest.mark.parametrize("version", [EARLIER, *VERSIONS])
def test_the_engine_asks_what_was_recorded_and_reads_what_it_read(version: str, tmp_path: Path) -> None:
    recording = recording_of(version)
    assert recording["found"]["group"] == ("refused" if version == EARLIER else "accepted")
    with listening(replayer(recording["answers"])) as url:
        assert played(url, tmp_path / "weights", model_in(tmp_path)) == recording["found"]


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("POST /v1/completions", lambda text: text.replace('"token_ids"', '"ids"')),
        ("POST /v1/completions", lambda text: text.replace('"token_logprobs"', '"logprob_list"')),
        ("GET /v1/models", lambda text: text.replace('"max_model_len"', '"context"')),
        ("GET /metrics", lambda text: text.replace("cache_config_info", "cache_info")),
    ],
)
def test_an_answer_that_loses_a_field_is_noticed(tmp_path: Path, path: str, change: Callable[[str], str]) -> None:
    with listening(replayer(changed(path, change))) as url, pytest.raises(Rstar2Error):
        played(url, tmp_path / "weights", model_in(tmp_path))


def test_the_group_is_refused_for_a_version_without_its_routes() -> None:
    old = changed("GET /version", lambda text: '{"version": "0.27.1"}')
    with listening(replayer(old)) as url, pytest.raises(ConfigurationError, match=r"reports version 0\.27\.1"):
        VllmServerEngine(url, transport="group", start_timeout_s=0)
