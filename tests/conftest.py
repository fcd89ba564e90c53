"""What every test shares: no network, and torch kept to two threads."""

import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "2")

pytest_plugins = ["rstar2_env.testing.fixtures"]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Folder of an untrained model of a few thousand parameters, with its tokenizer."""
    from rstar2_env.trainers._tiny import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("model"), hidden=32, layers=1)
