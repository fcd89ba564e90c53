"""What the tests of rollouts share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="rollouts need the extra 'train'")
pytest.importorskip("trl", reason="the chat templates come from TRL, in the extra 'train'")


# pytest imports each test file on its own; the helpers beside them are found by this.
sys.path.insert(0, str(Path(__file__).parent))
