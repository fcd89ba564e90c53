"""The client of chat completions: what it sends, what it asks for again, and how it says what went wrong."""

from __future__ import annotations

import multiprocessing
import pickle
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from flaky_server import FlakyServer, flaky

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.chat_endpoint import ChatEndpoint

HELLO = [{"role": "user", "content": "hello"}]


def completion(text: str | None) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}


def endpoint(server: FlakyServer, **options: Any) -> ChatEndpoint:
    return ChatEndpoint(f"{server.address}/v1/", **{"retries": 2, "timeout_s": 20, **options})


def test_the_conversation_and_every_field_are_sent() -> None:
    with flaky(lambda asked, number: (200, completion("hi"))) as server:
        asks = endpoint(server, api_key="secret")
        assert asks.complete(HELLO, model="m", temperature=0.5) == "hi"
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.body == {"model": "m", "temperature": 0.5, "messages": HELLO}
    assert asked.headers["Authorization"] == "Bearer secret"


def test_text_that_no_file_can_hold_is_sent_too() -> None:
    with flaky(lambda asked, number: (200, completion("\ud800"))) as server:
        assert endpoint(server).complete([{"role": "user", "content": "\udfff\0"}]) == "\ud800"
    assert server.asked[0].body["messages"][0]["content"] == "\udfff\0"


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503])
def test_passing_trouble_is_asked_again(status: int) -> None:
    answers = [(status, {}, {"retry-after": "0"}), None, (200, completion("hi"))]
    with flaky(lambda asked, number: answers[number]) as server:  # type: ignore[arg-type]  # a list of its answers
        assert endpoint(server).complete(HELLO) == "hi"
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [301, 400, 401, 404, 422])
def test_a_refusal_is_told_at_once_with_the_endpoint_the_status_and_its_words(status: int) -> None:
    refuse = (status, {"error": {"message": "no such model"}})
    with (
        flaky(lambda asked, number: refuse) as server,
        pytest.raises(ServiceError) as refused,
    ):
        endpoint(server).complete(HELLO)
    assert str(refused.value) == f"POST {server.address}/v1/chat/completions failed: {status}: no such model"
    assert len(server.asked) == 1


@pytest.mark.parametrize(("api", "other"), [("chat", "responses"), ("responses", "chat")])
@pytest.mark.parametrize("body", [{"detail": "Not Found"}, "404 page not found", "Invalid URL (POST /v1/responses)"])
def test_an_address_that_does_not_exist_is_told_with_the_other_api(api: Any, other: str, body: Any) -> None:
    with flaky(lambda asked, number: (404, body)) as server, pytest.raises(ServiceError) as refused:
        endpoint(server, api=api).complete(HELLO, model="m")
    assert str(refused.value).endswith(f" (if the endpoint offers only the other API, set api={other!r})")


@pytest.mark.parametrize(
    "message",
    [
        "The model `m` does not exist.",
        "Model 'm' not found",
        "Response with id 'resp_1' not found.",
        "Item 'resp_1' not found",
    ],
)
def test_an_unknown_model_or_response_is_told_without_the_other_api(message: str) -> None:
    with (
        flaky(lambda asked, number: (404, {"error": {"message": message}})) as server,
        pytest.raises(ServiceError) as refused,
    ):
        endpoint(server, api="responses").complete(HELLO, model="m")
    assert str(refused.value).endswith(message)


def test_the_wait_is_the_one_that_the_server_asks_for() -> None:
    answers: list[Any] = [(429, {}, {"retry-after": "0.4"}), (429, {}, {"retry-after": "0"}), (200, completion("hi"))]
    with flaky(lambda asked, number: answers[number]) as server:
        began = time.monotonic()
        endpoint(server).complete(HELLO)
    assert 0.4 <= time.monotonic() - began < 5


@pytest.mark.parametrize(("again", "asked"), [(False, 1), (True, 3)])
def test_an_answer_that_takes_too_long_is_asked_for_again_where_that_is_wanted(again: bool, asked: int) -> None:
    done = threading.Event()

    def slow(*_: Any) -> tuple[int, Any]:
        done.wait(20)
        return 200, completion("late")

    with flaky(slow) as server:
        with pytest.raises(ServiceError, match=r"no answer within 0\.2 s; raise timeout_s"):
            endpoint(server, timeout_s=0.2, retry_timeouts=again).complete(HELLO)
        done.set()
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, "<html>hello</html>"), "the answer is not JSON: '<html>hello"),
        ((200, {"hello": 1}), "did not return a chat completion: {'hello': 1}"),
        ((200, {"choices": []}), "did not return a chat completion"),
        ((200, [1]), "did not return a chat completion"),
        ((200, completion("x" * 2000)), "longer than 1000 bytes"),
    ],
)
def test_something_else_than_a_completion_is_shown_and_not_asked_for_again(answer: Any, words: str) -> None:
    with flaky(lambda asked, number: answer) as server, pytest.raises(ServiceError, match=words) as refused:
        endpoint(server, max_bytes=1000).complete(HELLO)
    assert server.address in str(refused.value)
    assert len(server.asked) == 1


def test_a_choice_without_text_is_an_empty_one() -> None:
    with flaky(lambda asked, number: (200, completion(None))) as server:
        assert endpoint(server).complete(HELLO) == ""


def test_it_travels_to_other_processes_without_its_connections() -> None:
    with flaky(lambda asked, number: (200, completion("hi"))) as server:
        asks = endpoint(server, api_key="secret")
        asks.complete(HELLO)
        twin = pickle.loads(pickle.dumps(asks))
        assert twin.complete(HELLO) == "hi"
    assert [asked.headers["Authorization"] for asked in server.asked] == ["Bearer secret"] * 2


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http://", "", "http://a b/v1", None])
def test_something_else_than_an_address_is_refused_by_the_name_of_the_option(url: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^url must be an address such as http://127\.0\.0\.1:8000/v1, not"):
        ChatEndpoint(url, option="url")


@pytest.mark.parametrize(("path", "api"), [("/chat/completions", "chat"), ("/responses/", "responses")])
def test_an_address_with_the_path_of_an_api_is_refused_with_the_api(path: str, api: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"must not contain the path {path.rstrip('/')}, which api='{api}'"):
        ChatEndpoint(f"http://127.0.0.1:8000/v1{path}", option="url", api="chat")


@pytest.mark.parametrize(("api", "other"), [("chat", "responses"), ("responses", "chat")])
def test_an_endpoint_that_lacks_the_api_is_told_with_the_other_one(api: Any, other: str) -> None:
    with (
        flaky(lambda asked, number: (404, {"error": {"message": "no such path"}})) as server,
        pytest.raises(ServiceError, match=f"no such path.*set api='{other}'"),
    ):
        endpoint(server, api=api).complete(HELLO, model="m")


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"retries": -1}])
def test_numbers_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        ChatEndpoint("http://127.0.0.1:1/v1", **options)


class Counting:
    """A server that counts connections, and closes each after ``answers`` answers without saying so."""

    def __init__(self, answers: int, certificate: Path | None = None) -> None:
        self.connections = 0
        self.paths: list[str] = []
        counting = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            served = 0

            def setup(self) -> None:
                super().setup()
                counting.connections += 1

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                counting.paths.append(self.path)
                text = b'{"choices": [{"message": {"content": "hi"}}]}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                self.served += 1
                self.close_connection = self.served == answers

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.http.server_port}"

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def counting(request: pytest.FixtureRequest) -> Iterator[Counting]:
    server = Counting(request.param)
    yield server
    server.stop()


@pytest.mark.parametrize("counting", [100], indirect=True)
def test_a_connection_is_kept_and_threads_share_what_is_free(counting: Counting) -> None:
    asks = ChatEndpoint(f"http://{counting.place}/v1")
    assert [asks.complete(HELLO) for _ in range(5)] == ["hi"] * 5
    assert counting.connections == 1
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: asks.complete(HELLO), range(40))) == ["hi"] * 40
    assert counting.connections <= 4


@pytest.mark.parametrize("counting", [1], indirect=True)
def test_a_kept_connection_that_the_server_closed_costs_no_attempt(counting: Counting) -> None:
    asks = ChatEndpoint(f"http://{counting.place}/v1", retries=0)
    for _ in range(3):
        assert asks.complete(HELLO) == "hi"
        time.sleep(0.1)  # until the server has closed it
    assert counting.connections == 3


@pytest.mark.parametrize("counting", [100], indirect=True)
def test_the_proxy_of_the_environment_is_asked(counting: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://me:p%40ss@{counting.place}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert ChatEndpoint("http://model.invalid/v1").complete(HELLO) == "hi"
    assert counting.paths == ["http://model.invalid/v1/chat/completions"]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert ChatEndpoint(f"http://{counting.place}/v1").complete(HELLO) == "hi"
    assert counting.paths[1] == "/v1/chat/completions"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes the certificate, is not installed")
def test_https_is_spoken_with_whoever_has_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = tmp_path / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(certificate), "-out", str(tmp_path / "c.pem")]
    subprocess.run(command, check=True, capture_output=True)
    with certificate.open("a") as file:
        file.write((tmp_path / "c.pem").read_text())
    server = Counting(100, certificate)
    try:
        began = time.monotonic()
        with pytest.raises(ServiceError, match=r"certificate cannot be verified.*SSL_CERT_FILE"):
            ChatEndpoint(f"https://{server.place}/v1").complete(HELLO)
        assert time.monotonic() - began < 5, "it is not asked again"
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "c.pem"))
        assert ChatEndpoint(f"https://{server.place}/v1").complete(HELLO) == "hi"
    finally:
        server.stop()


def test_nobody_at_the_address_is_said_with_the_address_and_the_attempts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ServiceError, match=rf"POST {address}/chat/completions failed \(2 attempts\): it cannot"):
        ChatEndpoint(address, retries=1).complete(HELLO)


@pytest.mark.parametrize("counting", [100], indirect=True)
def test_a_forked_process_opens_connections_of_its_own(counting: Counting) -> None:
    asks = ChatEndpoint(f"http://{counting.place}/v1")
    assert asks.complete(HELLO) == "hi"
    child = multiprocessing.get_context("fork").Process(target=asks.complete, args=(HELLO,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert asks.complete(HELLO) == "hi"
    assert counting.connections == 2, "the parent's is used by the parent alone"
