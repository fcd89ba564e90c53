"""The server: authentication, refusals, metrics, and shutdown."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.secret import Secret
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Outcome, make_sandbox
from rstar2_env.sandbox.serve.main import read_token
from rstar2_env.sandbox.serve.options import ServeOptions

httpx = pytest.importorskip("httpx", reason="the extra 'remote' is not installed")

TOKEN = "correct-horse-battery"
SMALL = {"preload": [], "workers": 1, "waiting": 1}
JSON = {"Content-Type": "application/json"}


def sleeping(seconds: float) -> dict[str, Any]:
    return {"code": f"import time\ntime.sleep({seconds})\nprint('slept')", "limits": {"wall_s": 30.0}}


def lines(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines() if line]


@pytest.fixture(scope="module")
def guarded(serve: Any) -> Iterator[Any]:
    with serve(token=TOKEN, max_request_mb=0.05, provider_options=SMALL) as running:
        yield running


# Who may ask


@pytest.mark.parametrize("token", ["", "***"])
def test_an_empty_or_a_hidden_token_is_refused_and_does_not_open_the_server(token: str) -> None:
    with pytest.raises(ConfigurationError, match="The token is empty, or it is"):
        ServeOptions(token=token)


@pytest.mark.parametrize("path", ["/capabilities", "/metrics", "/status", "/no-such-page"])
def test_nothing_is_told_without_the_token(guarded: Any, path: str) -> None:
    assert httpx.get(guarded.url + path).status_code == 401


@pytest.mark.parametrize("host", ["x/healthz?", "x/ping#", "x/healthz"])
def test_the_host_header_opens_nothing(guarded: Any, host: str) -> None:
    assert httpx.get(guarded.url + "/capabilities", headers={"Host": host}).status_code in (400, 401)
    body = b'{"calls": [{"code": "1"}]}'
    answer = httpx.post(guarded.url + "/v1/calls", content=body, headers={**JSON, "Host": host})
    assert answer.status_code in (400, 401)


@pytest.mark.parametrize("path", ["/v1/calls", "/v1/cancel", "/v1/sessions/end", "/run", "/run/batch", "/judge"])
@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "\xff"])
def test_nothing_runs_without_the_token(guarded: Any, path: str, header: str | None) -> None:
    headers = JSON if header is None else {**JSON, "Authorization": header.encode("latin-1")}
    answer = httpx.post(guarded.url + path, content=b'{"calls": [{"code": "1"}]}', headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_the_token_opens_as_bearer_and_as_password(guarded: Any) -> None:
    as_password = base64.b64encode(f"any:{TOKEN}".encode()).decode()
    for header in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {as_password}"):
        assert httpx.get(guarded.url + "/capabilities", headers={"Authorization": header}).status_code == 200


def test_health_needs_no_token(guarded: Any) -> None:
    assert httpx.get(guarded.url + "/healthz").json()["status"] == "ok"


def test_a_client_with_the_token_runs_and_one_without_is_told(guarded: Any) -> None:
    with make_sandbox("remote", url=guarded.url, token=TOKEN) as sandbox:
        assert sandbox.run(Job("1 + 1")).value == "2"
        assert TOKEN not in repr(sandbox.options)
    with pytest.raises(SandboxUnavailableError, match="rejected the token"):
        make_sandbox("remote", url=guarded.url, token="a wrong one")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_it_is_not_open_beyond_this_machine_without_a_token(host: str) -> None:
    with pytest.raises(ConfigurationError, match="token"):
        ServeOptions(host=host)
    ServeOptions(host=host, token=TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.3.2.1"])
def test_this_machine_alone_needs_no_token(host: str) -> None:
    ServeOptions(host=host)


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    monkeypatch.delenv("RSTAR2_SANDBOX_TOKEN", raising=False)
    assert read_token(None, None) is None
    assert read_token(None, str(file)) == Secret(TOKEN)
    monkeypatch.setenv("RSTAR2_SANDBOX_TOKEN", "of-the-environment")
    assert read_token(None, None) == Secret("of-the-environment")
    assert read_token(None, str(file)) == Secret(TOKEN)
    file.write_text("\n")
    with pytest.raises(ConfigurationError, match="empty"):
        read_token(None, str(file))
    with pytest.raises(ConfigurationError, match="token file"):
        read_token(None, str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"token": "short"}, "8 characters"),
        ({"token": "with a space in it"}, "spaces"),
        ({"queue": 0}, "queue"),
        ({"slots": 0}, "slots"),
        ({"port": 70_000}, "port"),
        ({"drain_timeout_s": -1.0}, "drain_timeout_s"),
        ({"tls_cert": "cert.pem"}, "key"),
    ],
)
def test_a_wrong_option_is_told(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        ServeOptions(**options)


# What is refused


def test_a_web_page_cannot_send_a_program(server: Any) -> None:
    headers = {"Content-Type": "text/plain"}  # what a browser sends elsewhere without asking
    answer = httpx.post(server.url + "/v1/calls", content=b'{"calls": [{"code": "1"}]}', headers=headers)
    assert answer.status_code == 415


def test_a_request_that_is_too_large_is_refused_whatever_it_says(guarded: Any) -> None:
    headers = {**JSON, "Authorization": f"Bearer {TOKEN}"}
    body = json.dumps({"calls": [{"code": "#" + "x" * 100_000}]}).encode()
    told = httpx.post(guarded.url + "/v1/calls", content=body, headers=headers)
    untold = httpx.post(guarded.url + "/v1/calls", content=iter([body]), headers=headers)
    assert (told.status_code, untold.status_code) == (413, 413)


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"[]", b"{}", b'{"calls": []}', b'{"calls": [1]}', b'{"calls": [{"id": 5}]}', b"[" * 40_000, b"\xff"],
)
def test_a_request_that_is_none_is_refused(server: Any, body: bytes) -> None:
    answer = httpx.post(server.url + "/v1/calls", content=body, headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_a_call_that_is_none_leaves_the_others_of_its_batch(server: Any) -> None:
    calls = [{"id": "a", "code": 5}, {"id": "b", "code": "1 + 1"}]
    found = {line["id"]: line for line in lines(httpx.post(server.url + "/v1/calls", json={"calls": calls}))}
    assert "wrong type" in found["a"]["error"]
    assert found["b"]["outcome"]["value"] == "2"


def test_a_request_with_too_many_calls_is_refused_whole(serve: Any) -> None:
    with serve(max_calls=3, provider_options=SMALL) as server:
        calls = [{"code": "1"}] * 4
        answers = [httpx.post(server.url + "/v1/calls", json={"calls": calls[at:]}, timeout=60) for at in (1, 0)]
        batch = {"submissions": [{"type": "python", "solution": "1"}] * 4}
        judged = httpx.post(server.url + "/run/long-batch", json=batch, timeout=60)
        assert [answer.status_code for answer in (*answers, judged)] == [200, 422, 422]
        assert "at most 3 calls, not 4" in answers[1].json()["error"]
        assert server.metric("started_total") == 3


def test_an_answer_holds_a_bounded_amount(serve: Any) -> None:
    with serve(max_answer_mb=0.002, provider_options=SMALL) as server:
        call = {"id": "a", "code": "print('x' * 1000)"}
        assert lines(httpx.post(server.url + "/v1/calls", json={"calls": [call]}, timeout=60))[0]["outcome"]["stdout"]
        again = lines(httpx.post(server.url + "/v1/calls", json={"calls": [call] * 4}, timeout=60))
        assert [line["outcome"]["status"] for line in again] == ["ok", "unavailable", "unavailable", "unavailable"]
        assert "did not read" in again[1]["outcome"]["error_message"]
        batch = {"submissions": [{"type": "python", "solution": "print('x' * 1000)"}] * 4}
        ran = httpx.post(server.url + "/run/long-batch", json=batch, timeout=60).json()["results"]
        assert sorted(result["reason"] for result in ran) == ["", "", "internal_error", "internal_error"]
        judged = httpx.post(server.url + "/judge/long-batch", json=batch, timeout=60).json()["results"]
        assert [result["success"] for result in judged] == [True] * 4, "an answer without outputs holds none"


@pytest.mark.slow
def test_a_full_queue_answers_429_and_says_when_to_come_again(serve: Any, look: Any) -> None:
    with serve(queue=2, in_flight=1, provider_options=SMALL) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(httpx.post, server.url + "/v1/calls", json={"calls": [sleeping(2)] * 3}, timeout=60)
        look.wait_for(lambda: server.metric("in_flight") + server.metric("queue_depth") == 3)
        second = httpx.post(server.url + "/v1/calls", json={"calls": [{"code": "1"}]})
        assert second.status_code == 429
        assert int(second.headers["retry-after"]) >= 1
        assert second.json()["retry_after_s"] > 0
        assert server.metric("rejected_total") == 1
        assert [line["outcome"]["status"] for line in lines(first.result())] == ["ok"] * 3


def test_a_batch_that_fits_in_part_runs_in_part(serve: Any) -> None:
    with serve(queue=1, in_flight=1, provider_options=SMALL) as server:
        calls = [{"id": str(number), "code": "1"} for number in range(5)]
        found = lines(httpx.post(server.url + "/v1/calls", json={"calls": calls}, timeout=60))
        assert [line["id"] for line in found if "refused" in line] == ["2", "3", "4"]
        assert sorted(line["id"] for line in found if "outcome" in line) == ["0", "1"]


@pytest.mark.slow
def test_clients_of_an_overloaded_server_wait_and_lose_nothing(serve: Any) -> None:
    with serve(queue=4, provider_options=SMALL) as server:
        clients = [make_sandbox("remote", url=server.url, batch=8) for _ in range(3)]
        try:
            with ThreadPoolExecutor(3) as pool:
                jobs = [[Job(f"{place}{number}") for number in range(40)] for place in range(1, 4)]
                found = list(pool.map(lambda client, some: client.run_many(some), clients, jobs))
        finally:
            for client in clients:
                client.close()
        assert [[outcome.value for outcome in some] for some in found] == [[job.code for job in some] for some in jobs]
        assert server.metric("started_total") == 120


# Calls by id


def test_a_call_that_comes_again_is_not_run_again(server: Any) -> None:
    before = server.metric("started_total")
    body = {"calls": [{"id": "again-1", "code": "import os\nos.urandom(8).hex()"}]}
    values = {lines(httpx.post(server.url + "/v1/calls", json=body))[0]["outcome"]["value"] for _ in range(3)}
    assert len(values) == 1
    assert server.metric("started_total") == before + 1


def test_a_call_that_comes_again_while_it_runs_is_not_run_again(server: Any) -> None:
    before = server.metric("started_total")
    body = {"calls": [{"id": "again-2", "code": "import os, time\ntime.sleep(0.5)\nos.urandom(8).hex()"}]}
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: httpx.post(server.url + "/v1/calls", json=body), range(3)))
    assert len({lines(answer)[0]["outcome"]["value"] for answer in answers}) == 1
    assert server.metric("started_total") == before + 1


def test_an_outcome_that_is_not_kept_any_longer_is_not_found_by_running_again(serve: Any) -> None:
    with serve(remember_mb=0.001, provider_options=SMALL) as server:
        calls = [{"id": str(number), "code": "print('x' * 1000)"} for number in range(3)]
        assert len(lines(httpx.post(server.url + "/v1/calls", json={"calls": calls}, timeout=60))) == 3
        found = lines(httpx.post(server.url + "/v1/calls", json={"calls": calls[:1]}))
        assert found[0]["outcome"]["status"] == "unavailable"
        assert server.metric("started_total") == 3


def test_clients_are_told_how_many_programs_run_at_once(serve: Any) -> None:
    with serve(slots=8, provider_options=SMALL) as many, serve(provider_options=SMALL) as one:
        assert httpx.get(many.url + "/capabilities").json()["slots"] == 8
        assert httpx.get(one.url + "/capabilities").json()["slots"] == 1


def test_what_is_remembered_is_bounded_in_time(serve: Any) -> None:
    with serve(remember_s=0.2, provider_options=SMALL) as server:
        for _ in range(3):
            httpx.post(server.url + "/v1/calls", json={"calls": [{"code": "1"}] * 5}, timeout=60)
            time.sleep(0.3)
        assert server.metric("remembered") <= 5


def test_a_batch_for_another_boot_runs_nothing(server: Any) -> None:
    before = server.metric("started_total")
    answer = httpx.post(server.url + "/v1/calls", json={"boot": "another", "calls": [{"code": "1"}]})
    assert answer.status_code == 409
    assert answer.json()["boot"] == httpx.get(server.url + "/capabilities").json()["boot"]
    assert server.metric("started_total") == before


@pytest.mark.slow
def test_a_client_that_went_away_has_its_calls_ended(serve: Any, look: Any) -> None:
    with serve(orphan_timeout_s=0.3, queue=8, in_flight=1, provider_options=SMALL) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.url + "/v1/calls", json={"calls": [sleeping(25)] * 4}, timeout=1)
        look.wait_for(lambda: server.metric("in_flight") + server.metric("queue_depth") == 0)
        assert server.metric("cancelled_total") == 4
        assert server.metric("started_total") == 1


@pytest.mark.slow
def test_a_client_that_comes_back_in_time_finds_its_call(serve: Any) -> None:
    with serve(orphan_timeout_s=10.0, provider_options=SMALL) as server:
        body = {"calls": [{"id": "mine", **sleeping(2)}]}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.url + "/v1/calls", json=body, timeout=0.5)
        found = lines(httpx.post(server.url + "/v1/calls", json=body, timeout=60))
        assert found[0]["outcome"]["stdout"] == "slept\n"
        assert server.metric("started_total") == 1


def test_it_gives_a_sign_of_life_while_nothing_happens(serve: Any) -> None:
    with serve(beat_s=0.2, provider_options=SMALL) as server:
        answer = httpx.post(server.url + "/v1/calls", json={"calls": [sleeping(1.5)]}, timeout=60)
        assert answer.text.count("\n") >= 3
        assert len(lines(answer)) == 1


def test_a_client_that_wants_strict_isolation_uses_no_server_without(serve: Any) -> None:
    with serve(provider_options={**SMALL, "isolation": "none"}) as server:
        with pytest.raises(SandboxUnavailableError, match=r"isolation='strict'.*no network"):
            make_sandbox("remote", url=server.url)
        with (
            pytest.warns(RuntimeWarning, match="no network"),
            make_sandbox("remote", url=server.url, isolation="best") as sandbox,
        ):
            assert sandbox.run(Job("1 + 1")).value == "2"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_it_speaks_https_to_those_who_trust_its_certificate(serve: Any, tmp_path: Path) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert]
    subprocess.run(make, check=True, capture_output=True)
    with serve(tls_cert=cert, tls_key=key, provider_options=SMALL) as server:
        assert server.url.startswith("https://")
        with make_sandbox("remote", url=server.url, ca_file=cert) as sandbox:
            assert sandbox.run(Job("1 + 1")).value == "2"
        with pytest.raises(SandboxUnavailableError, match="certificate"):
            make_sandbox("remote", url=server.url)


# What is measured


def test_the_metrics_are_prometheus_text_and_add_up(serve: Any) -> None:
    with serve(provider_options=SMALL) as server:
        httpx.post(server.url + "/v1/calls", json={"calls": [{"code": "1"}] * 3 + [{"code": "1/0"}]}, timeout=60)
        page = httpx.get(server.url + "/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=")
    samples: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for line in page.text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            kinds[name] = kind
        elif not line.startswith("#"):
            match = re.fullmatch(r'([a-z0-9_]+(?:\{[a-z]+="[^"]+"\})?) (\S+)', line)
            assert match, line
            samples[match[1]] = float(match[2])
    named = {re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", sample) for sample in samples}
    assert {re.sub("_count$", "", name) for name in kinds} == named
    assert samples['rstar2_sandbox_calls_total{status="ok"}'] == 3
    assert samples['rstar2_sandbox_calls_total{status="exception"}'] == 1
    assert samples['rstar2_sandbox_service_seconds_bucket{le="+Inf"}'] == 4
    assert samples["rstar2_sandbox_service_seconds_count"] == 4
    buckets = [value for name, value in samples.items() if name.startswith("rstar2_sandbox_wait_seconds_bucket")]
    assert buckets == sorted(buckets)


def test_a_provider_that_fails_in_any_way_is_an_outcome() -> None:
    """A provider that raises exceptions, to test the handling of errors in the server."""
    import asyncio

    from rstar2_env.sandbox.serve.service import Service
    from rstar2_env.testing import StubSandbox

    def fail(job: Job) -> ToolStatus:
        raise RuntimeError("a broken provider")

    heard: list[Outcome | None] = []

    async def go() -> None:
        service = Service(StubSandbox(fail), ServeOptions())
        service.take("x", Job("1")).watchers.add(lambda call: heard.append(call.outcome))
        while not heard:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        assert (service.running, service.room()) == (0, 1024 + service.in_flight_limit)

    asyncio.run(go())
    (outcome,) = heard
    assert outcome is not None
    assert outcome.status is ToolStatus.UNAVAILABLE
    assert "a broken provider" in (outcome.error_message or "")
