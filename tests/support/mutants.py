"""What a conformance check says of a part that breaks one clause of its contract, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from rstar2_env.testing import ConformanceError


def broken(check: Callable[..., Any], part: Any, **options: Any) -> dict[str, str]:
    """The clauses that a part breaks, and what is said of each."""
    with pytest.raises(ConformanceError) as caught:
        check(part, **options)
    return dict(re.findall(r"^- (\w+): (.*?)(?=\n- |\Z)", str(caught.value), re.MULTILINE | re.DOTALL))
