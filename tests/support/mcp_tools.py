"""An MCP server with a tool for every kind of result: ``python mcp_tools.py``, or with a port for HTTP."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

server = MCPServer("tools for tests")
_words: list[str] = []


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def pick(kind: Literal["red", "blue"], count: Annotated[int, Field(ge=1, le=3)] = 1) -> str:
    """Pick something."""
    return " ".join([kind] * count)


@server.tool()
def remember(word: str) -> str:
    """Remember a word, and return all words so far."""
    _words.append(word)
    return " ".join(_words)


@server.tool()
def repeat(text: str, times: int) -> str:
    """Repeat a text."""
    return text * times


@server.tool()
def seeds(ctx: Context) -> str:
    """Return the seed of the episode and of the call."""
    meta: Any = ctx.request_context.meta or {}
    return f"{os.environ.get('RSTAR2_SEED')} {meta.get('rstar2-env/seed')} {meta.get('rstar2-env/call')}"


@server.tool()
def variable(key: str) -> str:
    """Return a variable of the environment."""
    return os.environ.get(key, "none")


@server.tool()
def sleep(seconds: float) -> str:
    """Sleep."""
    time.sleep(seconds)
    return "awake"


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
def die() -> str:
    """End the server."""
    print("the disk is full", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def shout(mib: int) -> str:
    """Write a long error output."""
    for _ in range(mib * 1024):
        os.write(2, b"x" * 1023 + b"\n")
    return "hoarse"


@server.tool()
def nothing() -> CallToolResult:
    """Return no content."""
    return CallToolResult(content=[])


class Name(BaseModel):
    """The answer of a person."""

    name: str


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask a person for a name."""
    return str(await ctx.elicit("Your name?", Name))


@server.tool()
async def sample(ctx: Context) -> str:
    """Ask a model for a text."""
    asked = SamplingMessage(role="user", content=TextContent(type="text", text="Hi"))
    return str(await ctx.session.create_message([asked], max_tokens=9))


class Point(BaseModel):
    """A structured result."""

    x: int
    y: int


@server.tool()
def structured() -> Annotated[CallToolResult, Point]:
    """Return structured content without text."""
    return CallToolResult(content=[], structured_content={"x": 1, "y": 2})


@server.tool()
def blocks() -> CallToolResult:
    """Return content of every kind."""
    inner = TextResourceContents(uri="memo:1", text="a memo")
    return CallToolResult(
        content=[
            TextContent(type="text", text="a text"),
            ImageContent(type="image", data="AAAA", mime_type="image/png"),
            AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
            EmbeddedResource(type="resource", resource=inner),
            EmbeddedResource(type="resource", resource=BlobResourceContents(uri="file:///b", blob="AAAA")),
            ResourceLink(type="resource_link", name="page", uri="http://127.0.0.1/page"),
        ]
    )


@server.tool()
def long(characters: int) -> str:
    """Return a long text."""
    return "x" * characters


@server.tool()
def allocate(mib: int) -> int:
    """Use memory."""
    return len(bytearray(mib << 20))


@contextlib.contextmanager
def _shown() -> Iterator[None]:
    """Show the policy what the system refused."""
    try:
        yield
    except OSError as error:
        raise ToolError(str(error)) from error


@server.tool()
def connect(port: int) -> str:
    """Connect to a port of this machine."""
    with _shown():
        socket.create_connection(("127.0.0.1", port), 5).close()
    return "connected"


@server.tool()
def write(path: str, folder: str = "") -> str:
    """Write a file, by its path or into the folder that a variable of the environment names."""
    with _shown():
        Path(path or f"{os.environ[folder]}/file").write_text("written")
    return "written"


@server.tool()
def fill(mib: int) -> str:
    """Write a file of a size."""
    with _shown():
        Path(f"{os.environ['TMPDIR']}/large").write_bytes(bytes(mib << 20))
    return "written"


@server.tool()
def fork(count: int) -> str:
    """Have a number of processes at the same time."""
    waiting = []
    try:
        with _shown():
            for _ in range(count):
                waiting.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
    finally:
        for one in waiting:
            one.kill()
            one.wait()
    return "forked"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
