"""What the tests of environments share."""

import pytest

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox import make_sandbox


@pytest.fixture(scope="session")
def sandbox():
    """A real local sandbox; skips where none can be started."""
    try:
        made = make_sandbox("local")
    except SandboxUnavailableError as error:
        pytest.skip(f"no local sandbox on this machine: {error}")
    with made:
        yield made
