"""An MCP server of 2025-06-18, written by hand: the handshake, pages of tools, calls that break the protocol."""

import json
import sys

TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}} for name in ("first", "second", "refuse", "unwell", "broken")
]
TOOLS[-1]["outputSchema"] = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
ERRORS = {"refuse": (-32602, "x must be even"), "unwell": (-32603, "no disk")}


def answer(method: str, params: dict) -> dict | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS[1:]} if params.get("cursor") else {"tools": TOOLS[:1], "nextCursor": "2"}
    if method == "tools/call" and params["name"] == "broken":
        return {"content": [], "structuredContent": {"x": "no"}}
    if method == "tools/call" and params["name"] not in ERRORS:
        return {"content": [{"type": "text", "text": f"{params['name']} of old"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    code, said = ERRORS.get((message.get("params") or {}).get("name"), (-32601, "Method not found"))
    reply = {"result": result} if result is not None else {"error": {"code": code, "message": said}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
