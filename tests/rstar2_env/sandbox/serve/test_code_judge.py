"""Clients of code-judge get the answers of code-judge, with correct reasons of failures."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

httpx = pytest.importorskip("httpx", reason="the extra 'remote' is not installed")

SMALL = {"preload": [], "workers": 1, "waiting": 1}
FIELDS = {"sub_id", "success", "run_success", "cost", "stdout", "stderr", "reason"}


def python(solution: str, **fields: Any) -> dict[str, Any]:
    return {"type": "python", "solution": solution, **fields}


@pytest.fixture(scope="module")
def judge(serve: Any) -> Iterator[Any]:
    with serve(judge_limits={"wall_s": 1.0}, provider_options=SMALL) as running:
        yield running


def run(judge: Any, *submissions: dict[str, Any], path: str = "/run/long-batch") -> list[dict[str, Any]]:
    answer = httpx.post(judge.url + path, json={"type": "batch", "submissions": submissions}, timeout=60)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


@pytest.mark.parametrize("path", ["/run/batch", "/run/long-batch"])
def test_a_batch_has_its_results_in_its_order(judge: Any, path: str) -> None:
    results = run(judge, *(python(f"print({number})", sub_id=f"s{number}") for number in range(10)), path=path)
    assert [result["sub_id"] for result in results] == [f"s{number}" for number in range(10)]
    assert [result["stdout"] for result in results] == [f"{number}\n" for number in range(10)]
    assert {frozenset(result) for result in results} == {frozenset(FIELDS)}


def test_a_batch_keeps_its_name_and_gives_one_to_what_has_none(judge: Any) -> None:
    body = {"sub_id": "b", "type": "batch", "submissions": [python("1")]}
    answer = httpx.post(judge.url + "/run/batch", json=body).json()
    assert answer["sub_id"] == "b"
    assert len(answer["results"][0]["sub_id"]) >= 16


@pytest.mark.parametrize(
    ("submission", "success", "run_success", "reason"),
    [
        (python("print(9)"), True, True, ""),
        (python("print(9)", expected_output=" 9\n\n"), True, True, ""),
        (python("print(9)", expected_output="8"), False, True, ""),
        (python("print(input())", input="9", expected_output="9"), True, True, ""),
        (python("print(9)\nraise SystemExit(3)", expected_output="9"), False, False, ""),
        (python("1 / 0"), False, False, ""),
        (python("def"), False, False, ""),
        (python("x = bytearray(4 << 30)"), False, False, ""),
        (python("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"), False, False, ""),
        (python("while True: pass"), False, False, "worker_timeout"),
        (python("import signal, time\nsignal.alarm(0)\ntime.sleep(60)"), False, False, "worker_timeout"),
        (python("from __future__ import annotations\nprint(1)"), True, True, ""),
        ({"type": "cpp", "solution": "int main() {}"}, False, False, "invalid_input"),
        ({"type": "math", "solution": "1"}, False, False, "invalid_input"),
    ],
)
def test_a_result_says_what_happened(
    judge: Any, submission: dict[str, Any], success: bool, run_success: bool, reason: str
) -> None:
    (result,) = run(judge, submission)
    assert (result["success"], result["run_success"], result["reason"]) == (success, run_success, reason)


def test_what_the_interpreter_says_is_in_stderr(judge: Any) -> None:
    raised, printed, killed = run(
        judge,
        python("1 / 0"),
        python("import sys\nprint('own', file=sys.stderr)"),
        python("while True: pass"),
    )
    assert raised["stderr"].startswith("Traceback (most recent call last):")
    assert raised["stderr"].endswith("ZeroDivisionError: division by zero\n")
    assert printed["stderr"] == "own\n"
    assert killed["stderr"]
    assert killed["cost"] >= 0.9


def test_one_alone_and_without_output(judge: Any) -> None:
    one = httpx.post(judge.url + "/run", json=python("print(1)")).json()
    judged = httpx.post(judge.url + "/judge", json=python("print(1)", expected_output="1")).json()
    batch = httpx.post(judge.url + "/judge/long-batch", json={"submissions": [python("print(1)")]}).json()
    assert set(one) == FIELDS
    assert set(judged) == set(batch["results"][0]) == FIELDS - {"stdout", "stderr"}
    assert judged["success"] is True


def test_ping_and_status(judge: Any) -> None:
    assert httpx.get(judge.url + "/ping").json() == "pong"
    assert httpx.get(judge.url + "/status").json() == {"queue": 0, "num_workers": 1}


@pytest.mark.parametrize(
    "body",
    [
        {"submissions": []},
        {"submissions": "x"},
        {"submissions": [{"solution": "1"}]},
        {"submissions": [{"type": "lisp", "solution": "1"}]},
        {"submissions": [{"type": "python"}]},
        {"submissions": [python("1", input=5)]},
        {"submissions": [5]},
        [],
    ],
)
def test_a_request_that_does_not_fit_is_told(judge: Any, body: Any) -> None:
    answer = httpx.post(judge.url + "/run/batch", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["msg"]


def test_a_long_batch_larger_than_the_queue_runs_whole(serve: Any) -> None:
    with serve(queue=4, provider_options=SMALL) as server:
        results = run(server, *(python(f"print({number})") for number in range(60)))
        assert [result["stdout"] for result in results] == [f"{number}\n" for number in range(60)]


def test_what_waits_when_the_server_stops_may_be_tried_again(serve: Any, look: Any) -> None:
    with serve(in_flight=1, provider_options=SMALL) as server, ThreadPoolExecutor(1) as pool:
        batch = pool.submit(run, server, *[python("import time\ntime.sleep(1.5)")] * 3)
        look.wait_for(lambda: server.metric("in_flight") == 1)
        server.process.terminate()
        assert [result["reason"] for result in batch.result()] == ["", "queue_timeout", "queue_timeout"]


def test_a_client_that_goes_away_ends_its_programs(serve: Any, look: Any) -> None:
    with serve(orphan_timeout_s=60.0, judge_limits={"wall_s": 60.0}, provider_options=SMALL) as server:
        body = {"submissions": [python("import time\ntime.sleep(60)")] * 5}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.url + "/run/long-batch", json=body, timeout=1)
        look.wait_for(lambda: server.metric("in_flight") + server.metric("queue_depth") == 0)


def test_an_address_can_hold_the_token(serve: Any) -> None:
    with serve(token="correct-horse-battery", provider_options=SMALL) as server:
        url = server.url.replace("http://", "http://any:correct-horse-battery@")
        assert httpx.post(f"{url}/run/long-batch", json={"submissions": [python("1")]}).status_code == 200
