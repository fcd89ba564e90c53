"""A vLLM server that dies and comes back: the run waits for it, and it serves nothing before it has the newest weights.

The servers are real HTTP servers on loopback that answer as ``vllm serve`` does; dead ones drop every connection. The
same with a real ``vllm serve`` is in tests/trainers/test_chain.py.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from flaky_server import Answer, Asked, flaky
from safetensors.torch import load_file

from rstar2_env.core.errors import ServiceError
from rstar2_env.rollout import Generation, SamplingParams, VllmServerEngine
from rstar2_env.rollout.engine import TurnTimeoutError
from rstar2_env.rollout.engines import vllm_server_fleet

pytest.importorskip("httpx", reason="servers need the extra 'remote'")

PROMPT = list(range(200))
BASE = 1
"""The token that a server draws with the weights that it was started with; later weights draw their own number."""


class Server:
    """Answers with the number of its weights, and can die and start again.

    Attributes:
        dead: Drops every connection.
        weights: The number that it draws; ``start`` makes it ``BASE`` again.
        refuses: Answers 500 to new weights.
        dies_at: Dies at its so many-th generation from now on.
        on_load: Called when it has loaded weights, before it says so.
    """

    def __init__(self) -> None:
        self.dead, self.refuses, self.weights, self.model = False, False, BASE, "m"
        self.dies_at: int | None = None
        self.on_load: Callable[[], None] = lambda: None
        self.log: list[str] = []
        self.address = ""

    def start(self) -> None:
        self.weights, self.dead = BASE, False
        self.log.append("start")

    def __call__(self, asked: Asked, number: int) -> Answer:
        if self.dead:
            return None
        if asked.path == "/v1/models":
            return 200, {"data": [{"id": self.model, "max_model_len": 512}]}
        if asked.path == "/metrics":
            return 200, 'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\n'
        if asked.path == "/health":
            return 200, ""
        if asked.path == "/collective_rpc":
            return self._order(asked.body)
        body = asked.body
        if isinstance(body["prompt"][0], list):
            return 200, {"choices": [{"logprobs": {"top_logprobs": [{"a": -1.0}]}} for _ in body["prompt"]]}
        if self.dies_at is not None:
            self.dies_at -= 1
            if self.dies_at < 0:
                self.dead, self.dies_at = True, None
                return None
        self.log.append(f"draw {self.weights}")
        choice = {"token_ids": [self.weights], "logprobs": {"token_logprobs": [-1.0]}, "finish_reason": "length"}
        return 200, {"choices": [choice]}

    def _order(self, body: Any) -> Answer:
        if body["method"] != "reload_weights":
            return 404, {"detail": "Not Found"}
        if self.refuses:
            return 500, {"error": "out of memory"}
        (file,) = Path(body["kwargs"]["weights_path"]).iterdir()
        self.weights = int(load_file(file)["w"])
        self.log.append(f"load {self.weights}")
        self.on_load()
        return 200, {"results": [None]}


Serve = Callable[..., VllmServerEngine]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_WATCH_S", 0.05), ("_FIRST_ASK_S", 0.02), ("_SLOWEST_ASK_S", 0.05)):
        monkeypatch.setattr(vllm_server_fleet, name, seconds)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(*servers: Server, **options: Any) -> VllmServerEngine:
            for server in servers:
                server.address = server.address or stack.enter_context(flaky(server)).address
            chosen = {
                "retries": 2,
                "timeout_s": 30,
                "start_timeout_s": 0,
                "reconnect_timeout_s": 60,
                "weights_dir": tmp_path,
                **options,
            }
            engine = VllmServerEngine([server.address for server in servers], **chosen)
            stack.callback(engine.close)
            return engine

        yield start


def weights(number: int) -> dict[str, torch.Tensor]:
    return {"w": torch.tensor(float(number))}


def ask(engine: VllmServerEngine, count: int = 1) -> list[Generation]:
    async def every() -> list[Generation]:
        # Prompts of their own: what one server holds is not asked of another.
        asked = (engine.generate([number, *PROMPT], SamplingParams(1)) for number in range(count))
        return list(await asyncio.gather(*asked))

    return asyncio.run(asyncio.wait_for(every(), 120))


def later(seconds: float, act: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()


def seen(what: Callable[[], bool]) -> None:
    """Wait until something is so."""
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_request_waits_for_the_server_and_gets_the_newest_weights(serve: Serve) -> None:
    server = Server()
    engine = serve(server)
    engine.update_weights(7, weights(7))
    server.dead = True
    later(0.5, server.start)
    (generation,) = ask(engine)
    assert generation.ids == [7]
    assert server.log == ["load 7", "start", "load 7", "draw 7"]


def test_a_server_that_dies_while_it_generates_loses_no_request(serve: Serve) -> None:
    server = Server()
    engine = serve(server)
    engine.update_weights(7, weights(7))
    server.dies_at = 5
    later(0.7, server.start)
    generations = ask(engine, 12)
    assert [one.ids for one in generations] == [[7]] * 12
    assert f"draw {BASE}" not in server.log
    assert server.log.count("draw 7") >= 12, "what was drawn while the server was lost is asked for again"


def test_a_restart_between_two_requests_is_seen(serve: Serve) -> None:
    server = Server()
    engine = serve(server)
    engine.update_weights(7, weights(7))
    ask(engine)
    server.dead = True
    seen(lambda: not engine._fleet.up)
    server.start()
    seen(lambda: bool(engine._fleet.up))
    assert ask(engine)[0].ids == [7]


def test_new_weights_wait_for_the_server_and_reach_it_once_it_is_back(serve: Serve) -> None:
    server = Server()
    engine = serve(server)
    engine.update_weights(7, weights(7))
    server.dead = True
    later(0.5, server.start)
    engine.update_weights(8, weights(8))
    assert ask(engine)[0].ids == [8]
    assert server.log[-2:] == ["load 8", "draw 8"]


def test_of_two_servers_the_other_works_on_and_the_lost_one_catches_up(serve: Serve) -> None:
    servers = [Server(), Server()]
    engine = serve(*servers)
    engine.update_weights(7, weights(7))
    servers[0].dead = True
    assert [one.ids for one in ask(engine, 6)] == [[7]] * 6
    engine.update_weights(8, weights(8))
    assert [one.ids for one in ask(engine, 4)] == [[8]] * 4
    servers[0].start()
    seen(lambda: len(engine._fleet.up) == 2)
    assert [one.ids for one in ask(engine, 8)] == [[8]] * 8
    assert servers[0].log[-1] == "draw 8"
    assert f"draw {BASE}" not in servers[0].log


def test_each_server_is_asked_itself_and_one_that_dies_is_left_out(serve: Serve) -> None:
    servers = [Server(), Server(), Server()]
    engine = serve(*servers)
    engine.update_weights(7, weights(7))
    # As after a hand-over that carries episodes on: one server has much more to do than the others.
    engine._fleet.servers[0].in_flight = 100
    servers[2].weights = 5

    def on_each() -> list[list[int]]:
        return [
            one.ids for one in asyncio.run(asyncio.wait_for(engine.generate_on_each(PROMPT, SamplingParams(1)), 60))
        ]

    assert on_each() == [[7], [7], [5]]
    servers[1].dies_at = 0
    assert on_each() == [[7], [5]]
    servers[1].start()
    seen(lambda: len(engine._fleet.up) == 3)
    assert on_each() == [[7], [7], [5]]
    assert f"draw {BASE}" not in servers[1].log


def test_where_every_server_dies_the_question_waits_for_one(serve: Serve) -> None:
    server = Server()
    engine = serve(server)
    engine.update_weights(7, weights(7))
    server.dies_at = 0
    later(0.3, server.start)
    (generation,) = asyncio.run(asyncio.wait_for(engine.generate_on_each(PROMPT, SamplingParams(1)), 60))
    assert generation.ids == [7]


def test_another_process_of_the_run_gives_it_the_weights_that_the_first_wrote(serve: Serve) -> None:
    server = Server()
    first = serve(server)
    second = serve(server)
    first.update_weights(7, weights(7))
    first._fleet.lost = lambda *_: None  # type: ignore[method-assign]  # the first one does not see it
    second.update_weights(7)
    server.dead = True
    later(0.3, server.start)
    assert ask(second)[0].ids == [7]
    assert f"draw {BASE}" not in server.log


def test_weights_that_become_old_while_it_loads_them_are_not_the_last(serve: Serve) -> None:
    server = Server()
    engine = serve(server)
    engine.update_weights(7, weights(7))

    def newer() -> None:
        server.on_load = lambda: None
        kept = engine._transport._kept
        for _ in kept.writing(weights(8).items(), kept.path(8)):
            pass
        kept._written = kept.path(8)

    server.dead, server.on_load = True, newer
    later(0.2, server.start)
    assert ask(engine)[0].ids == [8]
    assert server.log[-3:] == ["load 7", "load 8", "draw 8"]


def test_a_server_stays_out_while_the_weights_are_not_there_yet(serve: Serve) -> None:
    server = Server()
    second = serve(server, reconnect_timeout_s=0.5)
    second.update_weights(3)
    server.dead = True
    later(0.1, server.start)
    with pytest.raises(ServiceError, match="weights of version 3 are not in"):
        ask(second)
    assert f"draw {BASE}" not in server.log


def test_patience_ends_with_the_servers_address_and_the_reason(serve: Serve) -> None:
    server = Server()
    engine = serve(server, reconnect_timeout_s=0.3)
    server.dead = True
    with pytest.raises(ServiceError, match=rf"None of the vLLM servers has answered for 0.3 s.*{server.address}"):
        ask(engine)
    with pytest.raises(ServiceError, match="reconnect_timeout_s"):
        engine.update_weights(1, weights(1))


def test_a_server_that_comes_back_with_another_model_gets_no_requests(serve: Serve) -> None:
    server = Server()
    engine = serve(server, reconnect_timeout_s=0.5)
    server.dead, server.model = True, "other"
    later(0.1, server.start)
    with pytest.raises(ServiceError, match="serves other"):
        ask(engine)


def test_a_request_that_kills_every_server_is_given_up(serve: Serve) -> None:
    server = Server()
    engine = serve(server)

    def deadly(asked: Asked, number: int) -> Answer:
        generates = asked.path == "/v1/completions" and not isinstance(asked.body["prompt"][0], list)
        return None if generates else server(asked, number)

    with flaky(deadly) as bad, pytest.raises(ServiceError, match="3 attempts"):
        ask(VllmServerEngine(bad.address, retries=2, start_timeout_s=0, reconnect_timeout_s=60))
    assert ask(engine)[0].ids == [BASE]


def test_a_server_that_refuses_weights_is_an_error_and_not_a_loss(serve: Serve, tmp_path: Path) -> None:
    server = Server()
    engine = serve(server, retries=0)
    engine.update_weights(7, weights(7))
    server.refuses = True
    with pytest.raises(ServiceError, match="out of memory"):
        engine.update_weights(8, weights(8))
    assert ask(engine)[0].ids == [7]
    assert [folder.name.rpartition("-")[2] for folder in tmp_path.iterdir()] == ["7"], "what a restarted one would get"


def test_it_is_said_when_a_server_is_lost_and_when_it_is_back(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    engine = serve(server)
    server.dead = True
    later(0.2, server.start)
    with caplog.at_level(logging.WARNING, logger=vllm_server_fleet.__name__):
        ask(engine)
    said = [record.getMessage() for record in caplog.records]
    assert [server.address in line for line in said] == [True, True]
    assert "gets no requests" in said[0]
    assert "can be used again after" in said[1]


def test_counters_that_began_anew_are_not_subtracted(serve: Serve) -> None:
    server = Server()
    engine = serve(server)
    engine.stats()
    server.dead = True
    later(0.1, server.start)
    ask(engine)
    with pytest.raises(ServiceError, match="restarted at 0"):
        engine.stats()
    engine.stats()


def test_what_a_killed_run_left_is_cleared_away(serve: Serve, tmp_path: Path) -> None:
    engine = serve(Server())
    left = engine._transport._kept.path(9)
    left.mkdir()
    (tmp_path / "rstar2-weights-of-another-9").mkdir()
    engine.update_weights(7, weights(7))
    assert not left.exists()
    assert (tmp_path / "rstar2-weights-of-another-9").exists()


def test_requests_to_a_server_that_hangs_go_to_another_one_long_before_their_limit(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_server_fleet, "_ANSWER_S", 0.5)
    monkeypatch.setattr(vllm_server_fleet, "_HUNG_S", 0.5)
    gate = threading.Event()

    class Hung(Server):
        hung = False

        def __call__(self, asked: Asked, number: int) -> Answer:
            if self.hung:
                gate.wait(120)
            return super().__call__(asked, number)

    hung, other = Hung(), Server()
    engine = serve(hung, other, timeout_s=3600.0)
    hung.hung = True
    try:
        assert [one.ids for one in ask(engine, 4)] == [[BASE]] * 4
        assert not engine._fleet.servers[0].up
    finally:
        gate.set()


@pytest.mark.parametrize("hangs", [False, True])
def test_a_turn_that_is_late_is_the_turns_fault_where_the_server_is_there_and_the_servers_where_it_hangs(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    monkeypatch.setattr(vllm_server_fleet, "_ANSWER_S", 2.0)
    gate = threading.Event()

    class Slow(Server):
        slow = False

        def __call__(self, asked: Asked, number: int) -> Answer:
            if self.slow and (asked.path == "/v1/completions" or hangs):
                gate.wait(60)
            return super().__call__(asked, number)

    slow, other = Slow(), Server()
    engine = serve(slow, other, timeout_s=4.0)
    slow.slow = True
    try:
        if hangs:
            assert [one.ids for one in ask(engine, 4)] == [[BASE]] * 4
            assert engine._fleet.servers[0].losses == 1
        else:
            with pytest.raises(TurnTimeoutError, match="no answer within 4 s"):
                ask(engine, 4)
            assert not any(server.losses for server in engine._fleet.servers)
    finally:
        gate.set()
