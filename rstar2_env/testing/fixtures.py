"""pytest fixtures for environment authors. In ``conftest.py``: ``pytest_plugins = ["rstar2_env.testing.fixtures"]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest

from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.testing.stub_tool import StubTool

MakeEnv = Callable[..., "gym.Env[str, str]"]


@pytest.fixture
def stub_sandbox() -> StubSandbox:
    """A sandbox in which every program succeeds immediately and prints ``stub``."""
    return StubSandbox()


@pytest.fixture
def stub_tool() -> StubTool:
    """A tool named ``stub`` that immediately returns its arguments as text."""
    return StubTool()


@pytest.fixture
def make_env() -> Iterator[MakeEnv]:
    """Return a function like ``gym.make`` that closes its environments when the test ends."""
    made: list[gym.Env[str, str]] = []

    def make(env_id: str, **options: Any) -> gym.Env[str, str]:
        env: gym.Env[str, str] = gym.make(env_id, **options)
        made.append(env)
        return env

    yield make
    while made:
        made.pop().close()
