"""A server engine among servers that fail: real HTTP on loopback, and answers in the form of ``vllm serve``."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from flaky_server import Answer, Asked, FlakyServer, flaky
from peft import LoraConfig
from safetensors.torch import load_file

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.rollout import Engine, Generation, SamplingParams, Scheduler, VllmServerEngine
from rstar2_env.rollout.engines.registry import make_engine
from rstar2_env.rollout.engines.weight_transports.adapter import Adapter

pytest.importorskip("httpx", reason="servers need the extra 'remote'")

PROMPT = list(range(200))


class Server:
    """Answers as ``vllm serve`` does.

    Attributes:
        scaled: Whether log-probabilities take the temperature into account.
        full: Whether they are of all tokens, also with top-k.
        trouble: What to answer instead, for so many generations.
        held: Generations wait for it.
        extended: Whether the workers have our extension, in development mode.
        routes: Answers to further paths.
    """

    def __init__(self, **options: Any) -> None:
        self.scaled, self.full, self.extended, self.model = True, False, False, "m"
        self.trouble: list[Answer] = []
        self.held = threading.Event()
        self.held.set()
        self.loaded: list[dict[str, torch.Tensor]] = []
        self.routes: dict[str, Answer] = {}
        for name, value in options.items():
            setattr(self, name, value)
        self.http: FlakyServer

    def __call__(self, asked: Asked, number: int) -> Answer:
        if asked.path in self.routes:
            return self.routes[asked.path]
        if asked.path == "/v1/models":
            return 200, {"data": [{"id": self.model, "max_model_len": 512}]}
        if asked.path == "/metrics":
            return 200, self._metrics()
        if asked.path == "/health":
            return 200, ""
        if asked.path == "/collective_rpc":
            return self._order(asked.body)
        body = asked.body
        if isinstance(body["prompt"][0], list):
            value = -0.5 if body.get("temperature") == 2.0 and self.scaled else -1.0
            if body.get("top_k") == 1 and not self.full:
                value = 0.0
            return 200, {"choices": [{"logprobs": {"top_logprobs": [{"a": value}]}} for _ in body["prompt"]]}
        self.held.wait(20)
        if self.trouble:
            return self.trouble.pop(0)
        ids = [7] * body["max_tokens"]
        choice = {"token_ids": ids, "logprobs": {"token_logprobs": [-1.0] * len(ids)}, "finish_reason": "length"}
        return 200, {"choices": [choice]}

    def _metrics(self) -> str:
        labels = 'engine="0",model_name="m"'
        return (
            f"# HELP vllm:num_preemptions_total Preemptions.\nvllm:num_preemptions_total{{{labels}}} 3.0\n"
            f"vllm:num_requests_running{{{labels}}} 2.0\nvllm:kv_cache_usage_perc{{{labels}}} 0.25\n"
            'vllm:cache_config_info{block_size="16",kv_cache_size_tokens="None",num_gpu_blocks="100"} 1.0\n'
        )

    def _order(self, body: Any) -> Answer:
        if body["method"] == "keep_full_logprobs" and self.extended:
            self.full = True
            return 200, {"results": [{"kept": True}]}
        if body["method"] == "reload_weights" and self.extended:
            (file,) = Path(body["kwargs"]["weights_path"]).iterdir()
            self.loaded.append(load_file(file))
            return 200, {"results": [None]}
        return 404, {"detail": "Not Found"}

    @property
    def generations(self) -> list[Any]:
        """What it was asked to generate, its probes aside."""
        bodies = [asked.body for asked in self.http.asked if asked.path == "/v1/completions"]
        return [body for body in bodies if not isinstance(body["prompt"][0], list)]


@pytest.fixture
def serve() -> Any:
    with ExitStack() as stack:

        def start(*servers: Server, **options: Any) -> VllmServerEngine:
            for server in servers:
                server.http = stack.enter_context(flaky(server))
            addresses = [server.http.address for server in servers]
            engine = VllmServerEngine(addresses, **{"retries": 2, "timeout_s": 30, "start_timeout_s": 0, **options})
            stack.callback(engine.close)
            return engine

        yield start


Serve = Callable[..., VllmServerEngine]


def ask(engine: Engine, *prompts: list[int], **options: Any) -> list[Generation]:
    async def every() -> list[Generation]:
        params = SamplingParams(3, **options)
        return list(await asyncio.gather(*(engine.generate(prompt, params) for prompt in prompts)))

    return asyncio.run(asyncio.wait_for(every(), 60))


def test_every_field_that_a_server_would_fill_in_by_itself_is_said(serve: Serve) -> None:
    server = Server()
    ask(serve(server), PROMPT, seed=2**64 - 1, stop_ids=(4,), stop=("x",))
    (body,) = server.generations
    said = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "ignore_eos": True}
    assert {name: body[name] for name in said} == said
    assert (body["stop_token_ids"], body["stop"], body["include_stop_str_in_output"]) == ([4], ["x"], True)
    assert 0 <= body["seed"] < 2**63


def test_requests_are_shared_evenly(serve: Serve) -> None:
    servers = [Server(), Server(), Server()]
    for server in servers:
        server.held.clear()
    engine = serve(*servers)

    async def burst() -> None:
        tasks = [asyncio.create_task(engine.generate([i + 1], SamplingParams(2))) for i in range(30)]
        while sum(len(server.generations) for server in servers) < 30:
            await asyncio.sleep(0.01)
        for server in servers:
            server.held.set()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(burst(), 60))
    assert [len(server.generations) for server in servers] == [10, 10, 10]


def test_the_next_turn_goes_where_the_last_one_was(serve: Serve) -> None:
    servers = [Server(), Server()]
    engine = serve(*servers)
    conversations = [[100 + i] * 150 for i in range(6)]
    for _ in range(4):
        generations = ask(engine, *conversations)
        conversations = [ids + g.ids + [9] * 70 for ids, g in zip(conversations, generations, strict=True)]
    seen = [{body["prompt"][0] for body in server.generations} for server in servers]
    assert seen[0] | seen[1] == {100, 101, 102, 103, 104, 105}
    assert not seen[0] & seen[1]


def test_a_server_with_much_more_to_do_is_spared_even_where_it_holds_the_prefix(serve: Serve) -> None:
    servers = [Server(), Server()]
    for server in servers:
        server.held.clear()
    engine = serve(*servers)

    async def flood() -> None:
        tasks = [asyncio.create_task(engine.generate(PROMPT, SamplingParams(2))) for _ in range(40)]
        while sum(len(server.generations) for server in servers) < 40:
            await asyncio.sleep(0.01)
        for server in servers:
            server.held.set()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(flood(), 60))
    assert min(len(server.generations) for server in servers) >= 10


@pytest.mark.parametrize("trouble", [None, (503, "restarting")], ids=["a lost connection", "unavailable"])
def test_what_one_server_drops_another_answers(serve: Serve, trouble: Answer) -> None:
    servers = [Server(trouble=[trouble] * 50), Server()]
    (generation,) = ask(serve(*servers), PROMPT)
    assert generation.ids == [7, 7, 7]
    assert len(servers[1].generations) == 1
    asked = servers[0].generations
    assert not asked or asked[0]["seed"] == servers[1].generations[0]["seed"]


def test_a_server_that_is_gone_is_told_with_its_address(serve: Serve) -> None:
    server = Server(trouble=[None] * 50)
    engine = serve(server)
    with pytest.raises(ServiceError, match=rf"{server.http.address}.*3 attempts"):
        ask(engine, PROMPT)


def test_a_refusal_has_the_servers_words_and_is_not_repeated(serve: Serve) -> None:
    server = Server(trouble=[(400, {"error": {"message": "prompt too long"}})])
    engine = serve(server)
    with pytest.raises(ServiceError, match="400: prompt too long"):
        ask(engine, PROMPT)
    assert len(server.generations) == 1


def test_log_probabilities_that_do_not_mean_what_the_protocol_says_are_refused(serve: Serve) -> None:
    raw = serve(Server(scaled=False, full=True))
    ask(raw, PROMPT, top_k=5)
    with pytest.raises(ConfigurationError, match="processed_logprobs"):
        ask(raw, PROMPT, temperature=0.7)
    processed = serve(Server())
    ask(processed, PROMPT, temperature=0.7)
    with pytest.raises(ConfigurationError, match="FullLogprobs"):
        ask(processed, PROMPT, top_p=0.9)
    ask(serve(Server(extended=True)), PROMPT, top_p=0.9, temperature=0.7)


def test_weights_go_through_the_folder_to_every_server_and_leave_nothing_behind(serve: Serve, tmp_path: Path) -> None:
    servers = [Server(extended=True), Server(extended=True)]
    engine = serve(*servers, weights_dir=tmp_path)
    tied = torch.arange(6.0).reshape(2, 3)
    engine.update_weights(5, {"embed": tied, "head": tied, "other": torch.ones(2)})
    for server in servers:
        (loaded,) = server.loaded
        assert set(loaded) == {"embed", "head", "other"}
        assert torch.equal(loaded["head"], tied)
    before, after = (ask(engine, PROMPT)[0] for _ in range(2))
    assert before.policy_version == after.policy_version == 5
    engine.update_weights(6, {"embed": tied})
    assert [folder.name.rpartition("-")[2] for folder in tmp_path.iterdir()] == ["6"], "the newest alone is kept"
    engine.close()
    assert list(tmp_path.iterdir()) == []


MISSING = 404, {"detail": "Not Found"}


@pytest.mark.parametrize(
    ("routes", "said"),
    [
        ({"/version": (200, {"version": "0.27.1"})}, r"0\.31 or newer on every server.*version 0\.27\.1"),
        ({"/version": MISSING}, "no version"),
        ({"/version": (200, {"version": "0.31.0+rocm721"}), "/weight_info": MISSING}, "VLLM_SERVER_DEV_MODE=1"),
    ],
)
def test_a_server_that_does_not_support_the_group_is_refused_at_the_start(
    serve: Serve, routes: dict[str, Answer], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        serve(Server(routes=routes), transport="group")


def test_a_server_that_supports_the_group_is_accepted(serve: Serve) -> None:
    routes = {"/version": (200, {"version": "0.32.0"}), "/weight_info": (200, {"weight_version": "default"})}
    assert serve(Server(routes=routes), transport="group").takes == "weights"


INFO = "/server_info?config_format=json"


@pytest.mark.parametrize("lora", [None, {"max_loras": 1}])
def test_a_server_without_room_for_two_adapters_is_refused_at_the_start(
    serve: Serve, tmp_path: Path, lora: dict[str, int] | None
) -> None:
    routes = {INFO: (200, {"vllm_config": {"lora_config": lora}})}
    with pytest.raises(ConfigurationError, match="--max-loras 2"):
        serve(Server(routes=routes), transport="adapter", weights_dir=tmp_path)


def test_the_adapter_of_requests_in_flight_is_kept_beside_the_newest(serve: Serve, tmp_path: Path) -> None:
    loading = ("/v1/load_lora_adapter", "/v1/unload_lora_adapter")
    routes = {INFO: (200, {"vllm_config": {"lora_config": {"max_loras": 2}}}), **dict.fromkeys(loading, (200, "done"))}
    engine = serve(Server(routes=routes), transport="adapter", weights_dir=tmp_path)
    for version in (1, 2, 3):
        engine.update_weights(version, Adapter(LoraConfig(r=2), [("w", torch.ones(2))]))
    assert sorted(folder.name.rpartition("-")[2] for folder in tmp_path.iterdir()) == ["2", "3"]
    engine.close()
    assert list(tmp_path.iterdir()) == []


def test_an_adapter_is_kept_as_long_as_a_server_reports_requests_that_use_it(serve: Serve, tmp_path: Path) -> None:
    loading = ("/v1/load_lora_adapter", "/v1/unload_lora_adapter")
    server = Server(routes={INFO: (404, ""), **dict.fromkeys(loading, (200, "done"))})
    engine = serve(server, transport="adapter", weights_dir=tmp_path)
    name = engine._transport.served_as("m", 1).removesuffix("1")
    reports: list[str] = []

    def renewed(version: int, running: str, waiting: str = "") -> tuple[list[str], list[str]]:
        labels = f'max_lora="2",running_lora_adapters="{running}",waiting_lora_adapters="{waiting}"'
        reports.insert(0, f"vllm:lora_requests_info{{{labels}}} {1.79e9 + version}\n")
        server.routes["/metrics"] = 200, "".join(reports)
        engine.update_weights(version, Adapter(LoraConfig(r=2), [("w", torch.ones(2))]))
        unloaded = [asked.body["lora_name"] for asked in server.http.asked if asked.path == loading[1]]
        kept = sorted(folder.name.removeprefix(name) for folder in tmp_path.iterdir())
        return kept, [one.removeprefix(name) for one in unloaded]

    renewed(1, "")
    renewed(2, f"{name}1")
    assert renewed(3, f"{name}2,{name}1")[0] == ["1", "2", "3"]
    assert renewed(4, f"{name}3", f"{name}1")[0] == ["1", "3", "4"]
    kept, unloaded = renewed(5, f"{name}4")
    assert kept == ["4", "5"], "the newest report counts, and no longer names the first adapter"
    # A sync begins by unloading its own name, which an earlier run may have left.
    assert unloaded == ["1", "2", "3", "4", "2", "5", "1", "3"]


def test_a_turn_may_wait_hours_in_a_busy_server(serve: Serve) -> None:
    assert inspect.signature(VllmServerEngine).parameters["timeout_s"].default >= 4 * 3600


def test_prefixes_of_other_weights_are_kept_apart(serve: Serve) -> None:
    server = Server()
    engine = serve(server)
    for version in (0, 0, 1):
        engine.update_weights(version)
        ask(engine, PROMPT)
    salts = [body["cache_salt"] for body in server.generations]
    assert salts[0] == salts[1] != salts[2]


def test_weights_that_a_server_cannot_take_are_an_error_that_says_what_to_do(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="weights_dir"):
        serve(Server()).update_weights(1, {"w": torch.ones(1)})
    engine = serve(Server(), weights_dir=tmp_path)
    with pytest.raises(ServiceError, match="VLLM_SERVER_DEV_MODE"):
        engine.update_weights(1, {"w": torch.ones(1)})
    assert list(tmp_path.iterdir()) == []


def test_room_and_figures_are_those_of_all_servers(serve: Serve) -> None:
    engine = serve(Server(), Server())
    assert engine.capacity() == 3200
    stats = engine.stats()
    assert (stats.preemptions, stats.running, stats.kv_usage) == (6, 4, 0.25)
    assert stats.recomputed_tokens is None


def test_servers_of_different_models_or_of_none_are_refused(serve: Serve) -> None:
    with pytest.raises(ConfigurationError, match="different models: a, b"):
        serve(Server(model="a"), Server(model="b"))
    with pytest.raises(ConfigurationError, match="does not serve the model 'other'; it serves m"):
        serve(Server(), model="other")
    with pytest.raises(ConfigurationError, match="base_urls"):
        VllmServerEngine("localhost:8000")
    with flaky(lambda asked, number: (200, "hello")) as server:
        gone = server.address
    with pytest.raises(ServiceError, match=gone):
        VllmServerEngine(gone, start_timeout_s=0)


def test_closing_ends_what_is_in_flight_and_leaves_no_thread(serve: Serve) -> None:
    server = Server()
    server.held.clear()
    others = set(threading.enumerate())
    engine = serve(server)

    async def close_early() -> list[Any]:
        tasks = [asyncio.create_task(engine.generate(PROMPT, SamplingParams(2))) for _ in range(3)]
        while len(server.generations) < 3:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(engine.close)
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    outcomes = asyncio.run(asyncio.wait_for(close_early(), 60))
    server.held.set()
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    assert not [thread for thread in set(threading.enumerate()) - others if thread.name == "rstar2-http"]


def test_servers_by_name_may_stand_behind_the_scheduler(tmp_path: Path) -> None:
    servers = [Server(extended=True), Server(extended=True)]
    with ExitStack() as stack:
        for server in servers:
            server.http = stack.enter_context(flaky(server))
        model, tokenizer = torch.nn.Linear(2, 2), object()
        options = {
            "start_timeout_s": 0,
            "weights_dir": tmp_path,
            "base_urls": [server.http.address for server in servers],
        }
        with pytest.raises(ConfigurationError, match="base_urls must be a list"):
            make_engine("vllm-server", model, tokenizer, **{**options, "base_urls": "http://x"}, scheduler="kv_aware")
        scheduler = make_engine("vllm-server", model, tokenizer, **options, scheduler="least_requests")
        stack.callback(scheduler.close)
        assert isinstance(scheduler, Scheduler)
        ask(scheduler, PROMPT, PROMPT[:-1])
        assert [len(server.generations) for server in servers] == [1, 1]
        scheduler.update_weights(1, model)
        assert all(set(server.loaded[0]) == {"weight", "bias"} for server in servers)
        scheduler.close()
        assert list(tmp_path.iterdir()) == []
