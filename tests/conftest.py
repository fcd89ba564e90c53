"""What every test shares: no network, torch kept to two threads, an interrupt that interrupts."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# pytest imports each test file on its own; what several folders share is found by this. (Not this folder itself: in it,
# tests/rstar2_env would stand before the package.)
sys.path.insert(0, str(Path(__file__).parent / "support"))

from vllm_serve import first_weights, policy_folder, vllm_engine, vllm_server  # noqa: F401  # fixtures for every folder

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "2")

# A shell starts what it puts into the background with interrupts ignored, and every child inherits that: programs that
# tests interrupt would never hear of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says what else the machine does. Everywhere else examples are drawn anew in each run; CI
# tells of the change, and tries the same ones again, half as many.
IN_CI = "RSTAR2_CI" in os.environ
settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=IN_CI,
    max_examples=50 if IN_CI else 100,
)
settings.load_profile("any machine")

pytest_plugins = ["rstar2_env.testing.fixtures", "groups", "benchmark_programs"]


@pytest.fixture(scope="session", autouse=True)
def user_state(tmp_path_factory):
    """Folder in which runs record themselves as this user's (rstar2_env.core.trust): not among the user's own."""
    folder = tmp_path_factory.mktemp("state")
    os.environ["XDG_STATE_HOME"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Folder of an untrained model of a few thousand parameters, with its tokenizer."""
    from rstar2_env.trainers.demonstration.tiny import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("model"), hidden=32, layers=1)
