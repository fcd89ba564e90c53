"""The service behaves as described in the pages about a server."""

from __future__ import annotations

import re
from typing import Any

from places import DOCS
from typer.testing import CliRunner

from rstar2_env.cli.sandbox import app
from rstar2_env.sandbox.serve.options import ServeOptions

PAGES = ("sandbox-service.md", "sandbox-operation.md", "code-judge.md")
SECTION = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)


def test_the_example_runs(server: Any) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code.replace("http://node1:8700", server.url).replace(', "http://node2:8700"', ""), scope)
    assert [outcome.value for outcome in scope["outcomes"]] == [str(n**2) for n in range(1000)]


def test_every_option_that_it_names_is_one() -> None:
    shown = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    other = {"--provider"}
    assert {name for name in re.findall(r"--[a-z][a-z-]+", SECTION) if name not in shown} <= other


def test_the_bounds_are_those_by_default() -> None:
    most = ServeOptions().max_limits
    said = dict(re.findall(r"--max-([a-z]+) (\d+)", SECTION))
    assert said == {
        "timeout": f"{most.wall_s:g}",
        "memory": str(most.memory_mb),
        "processes": str(most.processes),
        "output": str(most.output_bytes),
        "files": str(most.file_mb),
        "request": f"{ServeOptions().max_request_mb:g}",
    }


def test_every_metric_is_documented(server: Any) -> None:
    import httpx

    page = httpx.get(server.url + "/metrics").text
    for name in re.findall(r"# TYPE rstar2_sandbox_(\w+)", page):
        assert f"`{name}" in SECTION, name
