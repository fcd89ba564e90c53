"""Weights broadcast to servers in a process group: all get them at once, and none answers with half of them.

The servers are processes that compute with a tiny model and are really killed (``small_vllm``); the same with vLLM
itself is in ``test_real_servers``.
"""

from __future__ import annotations

import asyncio
import copy
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from chain import Service, free_port
from places import SUPPORT
from transformers import AutoModelForCausalLM

from rstar2_env.core.errors import ServiceError
from rstar2_env.rollout import Generation, SamplingParams, VllmServerEngine
from rstar2_env.rollout.engines.checkpoint_weights import checkpoint_weights
from rstar2_env.rollout.engines.registry import make_engine

pytest.importorskip("httpx", reason="servers need the extra 'remote'")

pytestmark = pytest.mark.slow

PROMPT = [5, 6, 7, 8, 9]


@pytest.fixture(scope="module")
def servers(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Service]]:
    """Two servers, each with a folder of the model of its own."""
    made = []
    for number in range(2):
        folder = tmp_path_factory.mktemp(f"server{number}") / "model"
        folder.mkdir()
        for file in tiny_model.iterdir():
            (folder / file.name).symlink_to(file)
        port = free_port()
        command = [sys.executable, str(SUPPORT / "small_vllm.py"), str(folder), str(port)]
        made.append(Service(f"server {number}", command, folder.parent / "log", f"http://127.0.0.1:{port}/health"))
    for service in made:
        service.start()
    for service in made:
        service.ready()
    yield made
    for service in made:
        service.kill()


@pytest.fixture
def policy(tiny_model: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(str(tiny_model), dtype=torch.float32)


@pytest.fixture
def engine_of(servers: list[Service]) -> Iterator[Callable[..., VllmServerEngine]]:
    """Makes an engine of the running servers."""
    made = []
    for service in servers:
        if service.process is None or service.process.poll() is not None:
            service.start()
            service.ready()

    def make(*, reconnect_timeout_s: float = 60.0, **options: Any) -> VllmServerEngine:
        bases = [service.health.removesuffix("/health") for service in servers]
        own = {"transport": "group", "start_timeout_s": 0, "reconnect_timeout_s": reconnect_timeout_s, **options}
        made.append(VllmServerEngine(bases, **own))
        # The model is small: several buckets all the same.
        made[-1]._transport._setting = replace(made[-1]._transport._setting, bucket_bytes=10_000)
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def moved(policy: Any, seed: int = 0) -> Any:
    """The policy after a step of training: every weight moved."""
    policy = copy.deepcopy(policy)
    torch.manual_seed(seed)
    with torch.no_grad():
        for weights in policy.parameters():
            weights.add_(torch.randn_like(weights) * 0.02)
    return policy


def ask(engine: Any, count: int = 4) -> list[Generation]:
    async def every() -> list[Generation]:
        # At once, so that every server gets some of them.
        asked = (engine.generate(PROMPT, SamplingParams(6, temperature=1.0, seed=seed)) for seed in range(count))
        return list(await asyncio.gather(*asked))

    return asyncio.run(asyncio.wait_for(every(), 120))


def holds(engine: Any, policy: Any, version: int) -> None:
    """Every answer is of this version, and drawn with these weights."""
    for generation in ask(engine):
        with torch.no_grad():
            logits = policy(torch.tensor([PROMPT + generation.ids])).logits[0, len(PROMPT) - 1 : -1]
        own = logits.log_softmax(-1).gather(1, torch.tensor(generation.ids)[:, None])[:, 0]
        assert float((own - torch.tensor(generation.logprobs)).abs().max()) < 1e-4
        assert generation.policy_version == version


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_all_servers_answer_with_the_weights_of_the_version_that_they_name(engine_of: Any, policy: Any) -> None:
    engine = engine_of()
    for version in (1, 2, 5):
        policy = moved(policy, version)
        engine.update_weights(version, checkpoint_weights(policy))
        holds(engine, policy, version)
    assert len(engine._fleet.up) == 2


def test_engines_of_a_scheduler_get_their_weights_in_one_walk(servers: Any, engine_of: Any, policy: Any) -> None:
    engine_of()
    bases = [service.health.removesuffix("/health") for service in servers]
    options = {"scheduler": "least_requests", "base_urls": bases, "transport": "group"}
    scheduler = make_engine("vllm-server", policy, None, **options)
    walks = []

    def walk() -> Iterator[tuple[str, torch.Tensor]]:
        walks.append(1)
        yield from checkpoint_weights(policy)

    try:
        policy = moved(policy, 7)
        scheduler.update_weights(3, walk())
        holds(scheduler, policy, 3)
    finally:
        scheduler.close()
    assert walks == [1]


def test_a_server_killed_in_the_middle_leaves_no_half_of_the_weights_in_use(
    servers: list[Service], engine_of: Any, policy: Any
) -> None:
    engine = engine_of(reconnect_timeout_s=2.0)
    engine.update_weights(1, checkpoint_weights(policy))
    newer = moved(policy, 3)
    Path(servers[1].command[2], "die").touch()
    with pytest.raises(ServiceError, match="version 2 was aborted") as cut:
        engine.update_weights(2, checkpoint_weights(newer))
    assert cut.value.cause, "another attempt may succeed"
    with pytest.raises(ServiceError, match=r"vLLM servers has answered.*(was aborted|at the next weight sync)"):
        ask(engine)
    engine.update_weights(2, checkpoint_weights(newer))
    holds(engine, newer, 2)
    servers[1].kill()
    servers[1].start()
    servers[1].ready()
    until(lambda: "next weight sync" in engine._fleet.servers[1].why)
    holds(engine, newer, 2)
    engine.update_weights(3, checkpoint_weights(moved(policy, 4)))
    until(lambda: len(engine._fleet.up) == 2)
    holds(engine, moved(policy, 4), 3)


@pytest.mark.proof
def test_a_walk_that_fails_in_the_middle_is_made_good_by_the_next_one(engine_of: Any, policy: Any) -> None:
    engine = engine_of()
    engine.update_weights(1, checkpoint_weights(policy))

    def broken() -> Iterator[tuple[str, torch.Tensor]]:
        for number, item in enumerate(checkpoint_weights(moved(policy, 5))):
            if number == 9:
                raise ValueError("no more")
            yield item

    with pytest.raises(ValueError, match="no more"):
        engine.update_weights(2, broken())
    newer = moved(policy, 6)
    engine.update_weights(2, checkpoint_weights(newer))
    holds(engine, newer, 2)


@pytest.mark.proof
def test_with_a_folder_a_server_that_restarts_is_given_the_weights_before_any_request(
    servers: list[Service], engine_of: Any, policy: Any, tmp_path: Path
) -> None:
    engine = engine_of(weights_dir=tmp_path)
    newer = moved(policy, 8)
    engine.update_weights(4, checkpoint_weights(newer))
    for service in servers:
        service.kill()
    for service in servers:
        service.start()
    holds(engine, newer, 4)
    engine.close()
    assert not list(tmp_path.iterdir())
