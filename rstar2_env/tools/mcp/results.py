"""The text that the policy is shown for the result of an MCP tool.

Covered: text, structured content without text, embedded text, links. Images, sounds and other binary content appear
only as a note with their type. Not covered: the length of the text (``rstar2_env.tools.cut``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def result_text(result: Any) -> str:
    """Return the text blocks of a ``mcp_types.CallToolResult``, or its structured content as JSON if there are none."""
    blocks = list(_blocks(result.content))
    if not blocks and result.structured_content is not None:
        # A server should repeat structured content as text, but need not.
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(blocks)


def _blocks(content: Any) -> Iterator[str]:
    for block in content:
        match block.type:
            case "text":
                if block.text:
                    yield block.text
            case "resource" if hasattr(block.resource, "text"):
                yield block.resource.text
            case "resource":
                yield f"[{block.resource.mime_type or 'bytes'} at {block.resource.uri}: not shown]"
            case "resource_link":
                yield f"[{block.name}: {block.uri}]"
            case _:
                yield f"[{block.type}, {block.mime_type}: not shown]"
