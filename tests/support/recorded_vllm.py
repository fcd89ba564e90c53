"""Requests and answers of a real ``vllm serve``: recorded through a proxy, and replayed by a server on loopback.

Record the version of vLLM that is installed with ``python tests/support/recorded_vllm.py``. A recording has, for each
request that the engine sends, the answer; a request with another route or field has none, and the replaying server
answers it with status 599 and the difference.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "rstar2_env" / "rollout" / "engines" / "recorded"
VERSIONS = ("0.31.0", "0.32.0")
"""The versions of vLLM's CPU build on which ``make proof`` runs the engines' tests; the extra ``vllm`` allows no newer
one."""
EARLIER = "0.27.1"
"""A recorded version of AMD's images, without the routes of ``transport='group'``."""
PROMPT = [5, 6, 7, 8, 9]


def played(url: str, weights_dir: Path, weights: Any, start_timeout_s: float = 0.0) -> dict[str, Any]:
    """Use a server for everything that a run uses it for; return what the engine says of it and what it drew."""
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.rollout import SamplingParams, VllmServerEngine

    engine = VllmServerEngine(url, weights_dir=weights_dir, start_timeout_s=start_timeout_s, seed=0)
    try:
        facts = engine._fleet.servers[0].facts
        found: dict[str, Any] = {"max_model_len": facts.max_model_len, "scaled": facts.scaled, "full": facts.full}
        found["capacity"] = engine.capacity()
        turns = {
            "plain": SamplingParams(6, temperature=1.0, seed=1),
            "warm": SamplingParams(6, temperature=0.7, seed=2),
            "greedy": SamplingParams(6, temperature=0.0, seed=3),
            "cut": SamplingParams(6, temperature=1.0, top_k=5, seed=4),
            "candidates": SamplingParams(4, temperature=1.0, candidates=3, seed=5),
        }
        for version in (0, 1):
            if version:
                engine.update_weights(version, weights)
            for name, params in turns.items():
                turn = asyncio.run(engine.generate(PROMPT, params))
                found[f"{name} {version}"] = [turn.ids, [round(one, 4) for one in turn.logprobs], turn.finish_reason]
                assert turn.policy_version == version
        stats = engine.stats()
        found["stats"] = [stats.prompt_tokens > 0, stats.generated_tokens > 0, stats.preemptions]
    finally:
        engine.close()
    try:
        VllmServerEngine(url, transport="group", start_timeout_s=0).close()
        found["group"] = "accepted"
    except ConfigurationError:
        found["group"] = "refused"
    return found


def key_of(method: str, path: str, body: Any) -> str:
    """Return a request as text, without what differs between two runs."""
    if isinstance(body, dict):
        body = {name: value for name, value in body.items() if name != "cache_salt"}
        if "kwargs" in body:
            body["kwargs"] = sorted(body["kwargs"])
    return f"{method} {path} {json.dumps(body, sort_keys=True)}"


Ask = Any
"""A function of method, path and body that returns status, content type and text."""


@contextmanager
def listening(ask: Ask) -> Iterator[str]:
    """Answer on loopback with a function; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            sent = self.rfile.read(length)
            status, kind, text = ask(self.command, self.path, json.loads(sent) if sent else None)
            data = text.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve  # the names that http.server calls

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def recorder(base: str, kept: dict[str, list[Any]], place: str) -> Ask:
    """Return a function that passes requests on, and keeps what is answered, without the folder ``place``."""
    lock = Lock()

    def ask(method: str, path: str, body: Any) -> tuple[int, str, str]:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(base + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=300) as answer:
                found = answer.status, answer.headers.get_content_type(), answer.read().decode()
        except urllib.error.HTTPError as error:
            found = error.code, error.headers.get_content_type(), error.read().decode()
        status, kind, text = found
        with lock:
            if path != "/health":
                lines = [line for line in text.splitlines(keepends=True) if path != "/metrics" or "vllm:" in line[:12]]
                kept.setdefault(key_of(method, path, body), []).append(
                    (status, kind, "".join(lines).replace(place, ""))
                )
        return found

    return ask


def replayer(kept: dict[str, list[Any]]) -> Ask:
    """Return a function that answers as was recorded: the answers to one request in their order, the last one again."""
    lock, counts = Lock(), dict.fromkeys(kept, 0)

    def ask(method: str, path: str, body: Any) -> tuple[int, str, str]:
        if path == "/health":
            return 200, "application/json", ""
        key = key_of(method, path, body)
        with lock:
            if key not in kept:
                near = [other for other in kept if other.startswith(f"{method} {path} ")]
                return 599, "application/json", json.dumps({"detail": f"not recorded: {key}; recorded: {near[:3]}"})
            number = min(counts[key], len(kept[key]) - 1)
            counts[key] += 1
        status, kind, text = kept[key][number]
        return status, kind, text

    return ask


def model_in(folder: Path) -> Any:
    """Write the model of the recordings, and return its weights."""
    import torch
    from safetensors.torch import load_file

    from rstar2_env.trainers.demonstration.tiny import make_tiny_model

    made = make_tiny_model(folder / "model", hidden=64, layers=2)
    weights = load_file(made / "model.safetensors")
    return {name: (3 * one if one.dim() > 1 else one).to(torch.float32) for name, one in weights.items()}


def main() -> None:
    """Record the installed version."""
    sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tools")]
    from results import source
    from vllm_serve import serving

    from rstar2_env.rollout.engines.weight_transports.nccl import installed_vllm

    version = installed_vllm()
    kept: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        weights = model_in(folder)
        with serving(folder / "model", folder / "log") as base:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"{base}/health", timeout=5)
                    break
                except OSError:
                    time.sleep(0.5)
            try:
                with listening(recorder(base, kept, place)) as proxy:
                    found = played(proxy, folder / "weights", weights, start_timeout_s=120)
            except BaseException:
                print((folder / "log").read_text()[-3000:])
                raise
    file = FOLDER / f"vllm-{version}.json"
    made = source("python tests/support/recorded_vllm.py", "answers, which other work on the machine does not change")
    file.write_text(json.dumps({"version": version, **made, "found": found, "answers": kept}, indent=1) + "\n")
    print(f"{file}: {len(kept)} requests")


if __name__ == "__main__":
    main()
