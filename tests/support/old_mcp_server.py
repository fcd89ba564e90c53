"""An MCP server of 2025-06-18, written by hand: the handshake, pages of tools, calls that break the protocol.

It offers prompts, resources and tasks too, and after the first call a tool more, which it announces.
"""

import json
import sys

TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}}
    for name in ("first", "second", "refuse", "unwell", "requests", "broken")
]
TOOLS[-1]["outputSchema"] = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
ERRORS = {"refuse": (-32602, "x must be even"), "unwell": (-32603, "no disk")}
requests: list[str] = []


def answer(method: str, params: dict) -> dict | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {
                "tools": {"listChanged": True},
                "prompts": {"listChanged": True},
                "resources": {"subscribe": True, "listChanged": True},
                "tasks": {"requests": {"tools": {"call": {}}}},
            },
            "serverInfo": {"name": "old", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS[1:]} if params.get("cursor") else {"tools": TOOLS[:1], "nextCursor": "2"}
    if method == "tools/call" and params["name"] == "broken":
        return {"content": [], "structuredContent": {"x": "no"}}
    if method == "tools/call" and params["name"] not in ERRORS:
        said = " ".join(requests) if params["name"] == "requests" else f"{params['name']} of old"
        return {"content": [{"type": "text", "text": said}]}
    return None


def send(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    requests.append(message["method"])
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    code, said = ERRORS.get((message.get("params") or {}).get("name"), (-32601, "Method not found"))
    send(
        {
            "id": message["id"],
            **({"result": result} if result is not None else {"error": {"code": code, "message": said}}),
        }
    )
    if message["method"] == "tools/call" and TOOLS[-1]["name"] != "late":
        TOOLS.append({"name": "late", "inputSchema": {"type": "object"}})
        for kind in ("tools", "prompts", "resources"):
            send({"method": f"notifications/{kind}/list_changed"})
