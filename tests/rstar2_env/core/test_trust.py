"""``trust.found``: which options of data are refused, and which are allowed."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core import trust
from rstar2_env.rollout.engines.registry import ENGINES
from rstar2_env.sandbox.limits import CEILING
from rstar2_env.wrappers.registry import WRAPPERS


def check(options: Any) -> None:
    with trust.bounds(["verify", "--run", "runs/theirs"]):
        trust.found(Path("runs/theirs"), options)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"env_options": {"sandbox": {"provider": "docker"}}}, "a sandbox"),
        ({"env_options": {"sandbox.provider": "docker"}}, "a sandbox"),
        ({"env_options": {"sandbox": {"provider": "local", "workers": 10**9}}}, "a sandbox"),
        ({"env_options": {"tools": ["python:sandbox.readable=/root"]}}, "a sandbox"),
        ({"env_options": {"tools": [["notebook", {"sandbox": {"readable": ["/root"]}}]]}}, "a sandbox"),
        ({"wrappers": ["record_episodes:path=/x"]}, "a file to write"),
        ({"wrappers": [{"name": "record_episodes", "path": "/x"}]}, "a file to write"),
        ({"wrappers": "tool_budget:calls=3+record_episodes:path=/x"}, "a file to write"),
        ({"env_options": {"limits": {"memory_mb": 1 << 24}}}, "a limit memory_mb of programs above 4096"),
        ({"env_options": {"limits.processes": 257}}, "a limit processes of programs above 256"),
        ({"env_options": {"sandbox": {"limits": {"wall_s": 1e9}}}}, "a limit wall_s of programs above 60"),
        ({"env_options": {"limits": {"cpu_s": float("nan")}}}, "a limit cpu_s of programs above 120"),
        ({"env_options": {"limits": {"file_mb": "1e9"}}}, "a limit file_mb of programs above 1024"),
        ({"env_options": {"limits": '{"file_mb": 9999}'}}, "a limit file_mb of programs above 1024"),
        ({"env_options": {"tools": ["python:limits.wall_s=1e3"]}}, "a limit wall_s of programs above 60"),
        ({"env_options": {"tools": ['python:limits={"output_bytes": 99999999}']}}, "a limit output_bytes of"),
        ({"env_options": {"tools": [["python", {"limits": {"wall_s": 61}}]]}}, "a limit wall_s of programs above 60"),
        ({"env_options": {"verifier": r'model:{"\u0075rl": "http://192.0.2.1"}'}}, "an address"),
        ({"model": {"attn_implementation": "theirs/kernel"}}, "the code of a model"),
        ({"rollout": {"engine_options": {"worker_cls": "payload.V"}}}, "the option worker_cls of another package"),
        ({"engine.scheduler_cls": "payload.V"}, "the option scheduler_cls of another package"),
        ({"rollout": {"engine_options": {"weights_dir": "/root"}}}, "the option weights_dir of another package"),
        ({"optim": {"trl_options": {"deepspeed": "/x.json"}}}, "the option deepspeed of another package"),
        ({"env_options": {"verifier": 'model:{"url": "http://192.0.2.1"}'}}, "an address"),
        ({"env_options": {"verifier": ["model", {"url": "http://192.0.2.1"}]}}, "an address"),
        (
            {"rollout": {"engine_options": {"base_urls": ["http://192.0.2.1"]}}},
            "the option base_urls of another package",
        ),
    ],
)
def test_an_option_that_acts_on_the_machine_is_refused(options: Any, what: str) -> None:
    with pytest.raises(trust.UntrustedError, match=f"runs/theirs chooses {what} "):
        check(options)


@pytest.mark.parametrize("value", ["its name", "its place", ["x"], [[]]], ids=str)
@pytest.mark.parametrize(
    "place",
    [
        *("sandbox", "env_options.sandbox", "sandbox.provider", "sandbox.readable", "server.isolation"),
        *("model.trust_remote_code", "optim.trl_options.push_to_hub", "rollout.engine_options.worker_cls"),
        *("engine.base_urls", "verifier.url", "verifier.base_url", "verifier.api_key_env", "agent.endpoint", "host"),
    ],
)
def test_a_value_is_refused_also_if_it_repeats_its_name(place: str, value: Any) -> None:
    *holders, name = place.split(".")
    options: Any = {name: {"its name": name, "its place": place}.get(str(value), value)}
    for holder in reversed(holders):
        options = {holder: options}
    with pytest.raises(trust.UntrustedError, match=r"runs/theirs chooses .* \("):
        check(options)


@pytest.mark.parametrize(
    "options",
    [
        {"env_options": {"sandbox": {"provider": "local", "workers": 2, "limits": {"wall_s": 2}}}},
        {"env_options": {"tools": ["python:limits.wall_s=2,max_output=100", 'python:limits={"file_mb": 1024}']}},
        {"env_options": {"limits": dataclasses.asdict(CEILING)}},
        {"processes": 1000, "env_options": {"system": "At most processes=1000."}},
        {"wrappers": ["tool_budget:calls=3", {"name": "fault_injection", "rate": 0.1}]},
        {"model": {"attn_implementation": "sdpa"}},
        {"rollout": {"engine": "vllm", "engine_options": {"max_model_len": 2048, "dtype": "bfloat16"}}},
        {"optim": {"trl_options": {"adam_beta2": 0.95, "lr_scheduler_kwargs": {"min_lr_rate": 0.1}}}},
    ],
)
def test_an_option_that_only_changes_the_run_is_allowed(options: Any) -> None:
    check(options)


WRAPPER_OPTIONS = {
    "fault_injection": {"rate", "kinds", "seed", "latency_s"},
    "instruction": {"text", "first"},
    "observation_limit": {"limit", "cut", "tokenizer"},
    "reward_shaping": {"components", "task_weight", "clip"},
    "save_state": set(),
    "tool_budget": {"calls", "per_turn"},
    "unary_feedback": {"attempts", "feedback", "decay", "penalty"},
}
"""Options of wrappers that data may set; data may not use the wrappers that are missing here."""


@pytest.mark.parametrize("wrapper", WRAPPERS.names())
def test_each_wrapper_is_refused_in_data_or_every_option_is_known_to_be_harmless(wrapper: str) -> None:
    names = set(inspect.signature(WRAPPERS.get(wrapper)).parameters) - {"env"}
    if wrapper in WRAPPER_OPTIONS:
        assert names == WRAPPER_OPTIONS[wrapper]
        check({"wrappers": [wrapper]})
    else:
        with pytest.raises(trust.UntrustedError, match="a file to write"):
            check({"wrappers": [f"{wrapper}:{min(names)}=/x"]})


ONLY_THE_USER = {"base_urls", "weights_dir", "relay_dir", "group_address", "fleet", "api_key_env", "tokenizer"}
"""Options of engines that name an address, a folder to write, a variable, or a part of the program itself."""


@pytest.mark.parametrize("engine", ENGINES.names())
def test_each_option_of_an_engine_is_allowed_in_data_or_left_to_the_user(engine: str) -> None:
    if engine == "vllm":
        pytest.importorskip("vllm")
    parameters = inspect.signature(ENGINES.get(engine).takes()).parameters.values()
    names = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD and one.name != "self"}
    assert names <= trust._ENGINE_OPTIONS | ONLY_THE_USER
    assert not ONLY_THE_USER & trust._ENGINE_OPTIONS
