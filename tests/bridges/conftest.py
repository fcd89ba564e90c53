"""The bridges' tests run in environments of their own (``make test-bridges``); no other run collects this folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

SUPPORT = str(Path(__file__).parents[1] / "support")
if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)

from bridges import VARIABLE  # noqa: E402  # found by the line above

collect_ignore_glob = [] if os.environ.get(VARIABLE) else ["test_*.py"]

pytest.register_assert_rewrite("their_agents")
