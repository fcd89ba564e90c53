"""A program that answers as ``vllm serve`` does, without a model: ``saying_vllm.py FOLDER PORT [HOST]``.

For what happens around servers that a stage starts, where loading torch takes too long. A turn is one of those in
``turns.json`` of the folder, by the request's seed. It wants the key of ``VLLM_API_KEY``, if there is one, and writes a
line for each answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TURNS = "turns.json"
_TURN_S = 0.05


def answer(turns: list[list[int]], path: str, body: Any) -> tuple[int, Any]:
    """Status and answer of a request."""
    if path == "/health":
        return 200, ""
    if path == "/metrics":
        return 200, 'vllm:cache_config_info{block_size="16",num_gpu_blocks="4096"} 1.0\n'
    if path == "/v1/models":
        return 200, {"data": [{"id": "policy", "max_model_len": 1 << 16}]}
    if path != "/v1/completions":
        return 404, {"detail": "Not Found"}
    time.sleep(_TURN_S)
    turn = turns[int(body.get("seed", 0)) % len(turns)][: body["max_tokens"]]
    logprobs = {"token_logprobs": [-1.0] * len(turn), "top_logprobs": [{"0": -1.0}] * len(turn)}
    choice = {"token_ids": turn, "logprobs": logprobs, "finish_reason": "stop"}
    return 200, {"choices": [choice] * (len(body["prompt"]) if isinstance(body["prompt"][0], list) else 1)}


def main(folder: str, port: str, host: str = "127.0.0.1") -> None:
    """Serve until killed."""
    turns, key = json.loads((Path(folder) / TURNS).read_text("utf-8")), os.environ.get("VLLM_API_KEY")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            refused = key and self.path.startswith("/v1/") and self.headers.get("authorization") != f"Bearer {key}"
            status, said = (401, {"error": "Unauthorized"}) if refused else answer(turns, self.path, body)
            data = (said if isinstance(said, str) else json.dumps(said)).encode()
            self.send_response(status)
            self.send_header("content-type", "text/plain" if isinstance(said, str) else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            print(self.path, status, flush=True)

        do_GET = do_POST = _serve  # the names that http.server calls

    ThreadingHTTPServer((host, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
