"""Claims about ``rstar2 list agents``."""

from __future__ import annotations

import json

from cli_runner import run


def test_agents_are_listed_with_a_line_and_their_options():
    listed = json.loads(run("list", "agents", "--json").stdout)
    assert listed["oracle"]["options"] == ["corrupt", "use_tool", "dialect"]
    assert "calculations" in run("list", "agents").output
