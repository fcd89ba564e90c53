"""What the tests of pipelines share."""

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def frozen():
    """The garbage collection after each stage leaves out what other tests imported, which a fork would copy."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
