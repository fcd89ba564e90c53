"""What every test shares: no network, torch kept to two threads, an interrupt that interrupts."""

import os
import signal
import sys
from pathlib import Path

import pytest

# pytest imports each test file on its own; what several folders share is found by this. (Not this folder itself: in it,
# tests/rstar2_env would stand before the package.)
sys.path.insert(0, str(Path(__file__).parent / "support"))

from vllm_serve import policy_folder, vllm_server  # noqa: F401  # fixtures for every folder

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "2")

# A shell starts what it puts into the background with interrupts ignored, and every child inherits that: programs that
# tests interrupt would never hear of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["rstar2_env.testing.fixtures"]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Folder of an untrained model of a few thousand parameters, with its tokenizer."""
    from rstar2_env.trainers.demonstration.tiny import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("model"), hidden=32, layers=1)


_SERVED = {"vllm_server": "vllm", "ray_nodes": "ray", "docker_options": "docker"}
"""Fixtures that start something large, and the name of the one worker of pytest-xdist that runs all of their tests."""
_PARAMS = {"vllm": "vllm", "vllm-server": "vllm", "ray": "ray", "docker": "docker"}
"""The same for parameters of fixtures that ask for one of these by its name."""

_HOMES = {"deadlines": "tests/rstar2_env/sandbox/", "train": "tests/trainers/"}
"""Where the tests with a marker are: ``tests/support/passes.py`` looks for them there alone."""


def pytest_itemcollected(item):
    """Say on which worker of pytest-xdist a test runs: with those of its file, and of what is started once a run.

    A provider of ``any_sandbox``, and a test that is a whole run of its own (``alone``), need no others beside them.
    """
    params = item.callspec.params if hasattr(item, "callspec") else {}
    served = [group for fixture, group in _SERVED.items() if fixture in getattr(item, "fixturenames", ())]
    served += [_PARAMS[value] for value in params.values() if isinstance(value, str) and value in _PARAMS]
    group = item.nodeid.partition("::")[0]
    if served:
        group = served[0]
        item.add_marker(pytest.mark.served)
    elif "any_sandbox" in params:
        group = params["any_sandbox"]
    elif item.get_closest_marker("alone"):
        group = item.nodeid
    item.add_marker(pytest.mark.xdist_group(group))
    if item.get_closest_marker("proof"):
        item.add_marker(pytest.mark.slow)
    for marker, folder in _HOMES.items():
        if item.get_closest_marker(marker) and not item.nodeid.startswith(folder):
            raise pytest.UsageError(f"{item.nodeid} is marked {marker!r}; such tests are found in {folder} alone.")
