"""A program that answers as ``vllm serve`` does, with a tiny model that really computes: ``small_vllm.py MODEL PORT``.

For what happens around a server that is killed, where starting vLLM itself takes too long. It loads weights from a
folder when it is told to, or receives them in a process group over gloo, tensor by tensor, and begins with those of
``MODEL`` again when it is started again. Where a file ``die`` is beside the model, it removes it and dies as it
receives weights for the second time in one transfer.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from rstar2_env.rollout.engines.weight_transports.gloo import GlooGroup

torch.set_num_threads(1)


class Model:
    """The model, one request at a time."""

    def __init__(self, folder: str) -> None:
        self._lock = threading.Lock()
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.longest = int(self._model.config.max_position_embeddings)
        self.loads = 0
        self.running = threading.Event()
        self.running.set()
        self.version, self.active, self._group, self._received = "default", False, None, 0
        self._die = Path(folder) / "die"

    @torch.no_grad()
    def complete(self, body: dict[str, Any], prompt: list[int]) -> dict[str, Any]:
        self.running.wait()
        draws = torch.Generator().manual_seed(int(body.get("seed", 0)))
        ids, logprobs, top, ended = list(prompt), [], [], "length"
        with self._lock:
            for _ in range(int(body["max_tokens"])):
                logits = self._model(torch.tensor([ids])).logits[0, -1].float() / (body.get("temperature") or 1.0)
                if body.get("top_k"):
                    logits[logits < logits.topk(int(body["top_k"])).values[-1]] = -torch.inf
                scores = logits.log_softmax(-1)
                token = int(torch.multinomial(scores.exp(), 1, generator=draws))
                ids.append(token)
                logprobs.append(float(scores[token]))
                top.append({str(int(scores.argmax())): float(scores.max())})
                if token in body.get("stop_token_ids", ()):
                    ended = "stop"
                    break
        found = {"token_logprobs": logprobs, "top_logprobs": top}
        return {"token_ids": ids[len(prompt) :], "logprobs": found, "finish_reason": ended}

    def load(self, folder: str) -> None:
        with self._lock:
            for file in sorted(Path(folder).glob("*.safetensors")):
                self._model.load_state_dict(load_file(file), strict=False)
            self.loads += 1

    def transfer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """What vLLM's workers do when weights are transferred."""
        if path == "/init_weight_transfer_engine":
            info = body["init_info"]
            where = info["master_address"], info["master_port"], info["rank_offset"], info["world_size"]
            self._group = GlooGroup(*where, timeout_s=info["timeout_s"])
        elif path == "/start_weight_update":
            if self.active:
                return 500, {"error": "a weight update is already active"}
            self.active, self._received = True, 0
        elif path == "/update_weights":
            if not self.active:
                return 500, {"error": "start_weight_update must be called first"}
            try:
                self._receive(body["update_info"])
            except RuntimeError as error:
                self.active = False
                return 500, {"error": str(error)}
        elif path == "/finish_weight_update":
            if not self.active:
                return 500, {"error": "finish_weight_update without a start"}
            self.active, self.version = False, (body or {}).get("weight_version", self.version)
        return 200, {"message": "done"}

    @torch.no_grad()
    def _receive(self, info: dict[str, Any]) -> None:
        self._received += 1
        if self._received == 2 and self._die.exists():
            self._die.unlink()
            os._exit(9)
        dtypes = [getattr(torch, name) for name in info["dtype_names"]]
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in zip(info["shapes"], dtypes, strict=True)]
        assert self._group is not None
        bucket = torch.empty(sum(sizes), dtype=torch.uint8)
        self._group.broadcast(bucket)
        own = self._model.state_dict()
        for name, shape, dtype, part in zip(info["names"], info["shapes"], dtypes, bucket.split(sizes), strict=True):
            own[name].copy_(part.view(dtype).view(shape))


TRANSFER = ("/init_weight_transfer_engine", "/start_weight_update", "/update_weights", "/finish_weight_update")


def answer(model: Model, path: str, body: Any) -> tuple[int, Any]:
    """Status and answer of a request."""
    if path == "/health":
        return 200, ""
    if path == "/v1/models":
        return 200, {"data": [{"id": "policy", "max_model_len": model.longest}]}
    if path == "/metrics":
        return 200, 'vllm:cache_config_info{block_size="16",num_gpu_blocks="4096"} 1.0\n'
    if path == "/collective_rpc" and body["method"] == "reload_weights":
        model.load(body["kwargs"]["weights_path"])
        return 200, {"results": [None]}
    if path == "/get_world_size":
        return 200, {"world_size": 1}
    if path == "/version":
        return 200, {"version": "0.31.0"}
    if path == "/weight_info":
        return 200, {"weight_version": model.version}
    if path == "/update_weight_version":
        model.version = body["new_version"]
        return 200, {"success": True}
    if path in ("/pause?mode=keep", "/resume"):
        model.running.set() if path == "/resume" else model.running.clear()
        return 200, {"status": "done"}
    if path in TRANSFER:
        return model.transfer(path, body)
    if path != "/v1/completions":
        return 404, {"detail": "Not Found"}
    prompts = body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]
    return 200, {"choices": [model.complete(body, prompt) for prompt in prompts]}


def main(folder: str, port: str) -> None:
    """Serve until killed."""
    model = Model(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            status, said = answer(model, self.path, json.loads(self.rfile.read(length)) if length else None)
            data = (said if isinstance(said, str) else json.dumps(said)).encode()
            self.send_response(status)
            self.send_header("content-type", "text/plain" if isinstance(said, str) else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve  # the names that http.server calls

    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
