"""The hand-over of sixty-four simulated processes: the first sends the weights, and all go on, or fail, together.

The processes are threads that gather as the processes of a run do. Each has the run's own engine, whose server computes
with a tiny model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="trainers need the extra 'train'")
pytest.importorskip("httpx", reason="servers need the extra 'remote'")

import torch
from flaky_server import Answer, Asked, flaky
from small_vllm import Model, answer
from transformers import AutoModelForCausalLM, AutoTokenizer

from rstar2_env.core.errors import ServiceError
from rstar2_env.rollout import SamplingParams
from rstar2_env.rollout.engines import vllm_server_fleet
from rstar2_env.testing.training.processes import ThreadRanks, in_each
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.backends.trl.weight_sync.engine import PolicyEngine
from rstar2_env.trainers.backends.trl.weight_sync.handover_probe import HandoverError

pytestmark = pytest.mark.train

SIZE, STEP = 64, 5


class Server:
    """A server of the tiny model.

    Attributes:
        refuses: Answers 500 to new weights.
        drops: Number of orders to load weights at which it drops the connection.
        forgets: Says that it loaded new weights, and does not.
    """

    def __init__(self, folder: Path) -> None:
        self.model = Model(str(folder))
        self.refuses, self.drops, self.forgets = False, 0, False

    def __call__(self, asked: Asked, number: int) -> Answer:
        if asked.path == "/collective_rpc" and asked.body["method"] == "reload_weights":
            if self.refuses:
                return 500, {"error": "out of memory"}
            if self.drops:
                self.drops -= 1
                return None
            if self.forgets:
                return 200, {"results": [None]}
        return answer(self.model, asked.path, asked.body)


@pytest.fixture
def server(tiny_model: Path) -> Server:
    return Server(tiny_model)


@pytest.fixture
def engines(
    server: Server, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[PolicyEngine]]:
    """The engine of each process, whose policy has moved since the server was started."""
    for name, seconds in (("_WATCH_S", 0.5), ("_FIRST_ASK_S", 0.02), ("_SLOWEST_ASK_S", 0.2)):
        monkeypatch.setattr(vllm_server_fleet, name, seconds)
    policy = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    with torch.no_grad():
        for weights in policy.parameters():
            weights.mul_(1.5)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    accelerator = SimpleNamespace(
        state=SimpleNamespace(num_processes=SIZE), unwrap_model=lambda model: model, autocast=nullcontext
    )
    with flaky(server) as http:
        options = {"base_urls": [http.address], "weights_dir": str(tmp_path), "retries": 0, "start_timeout_s": 0}
        config = TRAINERS.get("grpo").configure(
            {"model": str(tiny_model), "dtype": "float32", "engine": "vllm-server", "engine_options": options}
        )
        found: list[PolicyEngine] = []
        for rank in range(SIZE):
            # The rank alone, until the processes run: an engine gathers nothing before its first hand-over.
            trl = SimpleNamespace(
                ranks=SimpleNamespace(rank=rank, size=SIZE),
                state=SimpleNamespace(global_step=STEP),
                model=policy,
                optimizer=None,
                accelerator=accelerator,
            )
            found.append(PolicyEngine(config, trl, tokenizer))
        yield found
        for engine in found:
            engine.close()


def handed_over(engines: list[PolicyEngine]) -> list[Any]:
    """The result or the error of a hand-over in each process."""

    def update(ranks: ThreadRanks) -> None:
        engines[ranks.rank]._ranks = ranks
        engines[ranks.rank].update()

    return in_each(SIZE, update)


def version(engine: PolicyEngine) -> int:
    return asyncio.run(engine.engine.generate([40, 41, 42], SamplingParams(1))).policy_version


def test_the_weights_are_sent_once_and_every_process_has_their_version(
    engines: list[PolicyEngine], server: Server
) -> None:
    assert handed_over(engines) == [None] * SIZE
    assert server.model.loads == 1
    assert {version(engine) for engine in engines} == {STEP}
    assert handed_over(engines) == [None] * SIZE
    assert server.model.loads == 1, "the engine has these weights"


def test_all_try_again_together_when_the_server_is_lost(engines: list[PolicyEngine], server: Server) -> None:
    server.drops = 1
    assert handed_over(engines) == [None] * SIZE
    assert server.model.loads >= 1
    assert {version(engine) for engine in engines} == {STEP}


def test_every_process_raises_the_error_of_the_one_that_sends(engines: list[PolicyEngine], server: Server) -> None:
    server.refuses = True
    errors = handed_over(engines)
    assert all(isinstance(error, ServiceError) and "out of memory" in str(error) for error in errors)
    assert all("Process 0 failed in the weight sync" in str(error) for error in errors[1:])
    assert server.model.loads == 0


def test_every_process_stops_if_the_server_computes_with_other_weights(
    engines: list[PolicyEngine], server: Server
) -> None:
    server.forgets = True
    errors = handed_over(engines)
    assert all(isinstance(error, HandoverError) for error in errors)
