"""A hub of models on loopback: the part of the Hub's HTTP API with which huggingface_hub makes, fills and reads one.

Repositories are made, files come by preupload, Git LFS (one PUT a file) and commit, and are read by name. Only the
tokens that it was given may write. Not covered: Xet, branches, pull requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

LARGE = (".safetensors", ".bin")
"""Names that go by Git LFS."""


@dataclass
class Repository:
    """A repository of models: its files, and what was committed."""

    private: bool = False
    files: dict[str, bytes] = field(default_factory=lambda: {".gitattributes": b"*.safetensors filter=lfs\n"})
    commits: list[str] = field(default_factory=list)

    @property
    def sha(self) -> str:
        """Name of the last commit."""
        return hashlib.sha1(json.dumps(self.commits).encode()).hexdigest()


@dataclass
class Hub:
    """What the hub holds and was asked.

    Attributes:
        tokens: What ``whoami`` answers of each token.
        repositories: By name.
        asked: Every request, as method and path.
        answer: Given method and path, a status to answer with instead; 0 closes the connection.
    """

    tokens: dict[str, dict[str, Any]]
    repositories: dict[str, Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    answer: Callable[[str, str], int | None] = lambda method, path: None
    url: str = ""


def person(name: str, *orgs: str, role: str = "write") -> dict[str, Any]:
    """What the hub knows of whom a token belongs to."""
    return {
        "type": "user",
        "name": name,
        "orgs": [{"type": "org", "name": org} for org in orgs],
        "auth": {"type": "access_token", "accessToken": {"displayName": "test", "role": role}},
    }


@contextmanager
def model_hub(**tokens: dict[str, Any]) -> Iterator[Hub]:
    """Run a hub that knows these tokens, each with what ``person`` makes."""
    hub = Hub(tokens)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            path = urlsplit(self.path).path
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            hub.asked.append((self.command, path))
            broken = hub.answer(self.command, path)
            if broken == 0:
                self.close_connection = True
                return
            status, content = (broken, {"error": "asked to"}) if broken else _answer(hub, self, path, body)
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if "/resolve/" in path and status == 200:
                name = path[1:].split("/resolve/")[0]
                self.send_header("X-Repo-Commit", hub.repositories[name].sha)
                self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_POST = do_PUT = handle_any

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(hub: Hub, request: BaseHTTPRequestHandler, path: str, body: bytes) -> tuple[int, Any]:
    token = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
    who = hub.tokens.get(token)
    if path.startswith("/lfs/"):  # the address is the right to write, as at a storage of objects
        oid = path.removeprefix("/lfs/")
        if hashlib.sha256(body).hexdigest() != oid:
            return 400, {"error": "checksum"}
        hub.large[oid] = body
        return 200, {}
    if path == "/api/whoami-v2":
        return (200, who) if who else (401, {"error": "Invalid credentials"})
    if path == "/api/validate-yaml":
        return 200, {"errors": [], "warnings": []}
    if path == "/api/repos/create":
        return _create(hub, who, json.loads(body))
    if "/resolve/" in path:
        name, _, file = path[1:].partition("/resolve/")
        found = hub.repositories.get(name)
        content = found.files.get(file.partition("/")[2]) if found and (who or not found.private) else None
        return (404, {"error": "not found"}) if content is None else (200, content)
    if path.endswith("/info/lfs/objects/batch"):
        return 200, {"transfer": "basic", "objects": [_batch(hub, one) for one in json.loads(body)["objects"]]}
    words = path.removeprefix("/api/models/").split("/")
    name, verb = "/".join(words[:2]), words[2] if len(words) > 2 else ""
    held = hub.repositories.get(name)
    if held is None or (held.private and not who):
        return 404, {"error": "Repository not found"}
    if verb in ("", "revision"):
        return 200, {"id": name, "private": held.private, "sha": held.sha, "siblings": _files(held)}
    if verb == "tree":
        return 200, [{"type": "file", "path": one["rfilename"], "oid": one["blobId"], **one} for one in _files(held)]
    if not _may_write(who, name):
        return 403, {"error": "Forbidden"}
    if verb == "preupload":
        return 200, {"files": [_mode(one["path"]) for one in json.loads(body)["files"]]}
    return _commit(hub, held, name, body) if verb == "commit" else (404, {"error": path})


def _create(hub: Hub, who: dict[str, Any] | None, asked: dict[str, Any]) -> tuple[int, Any]:
    name = f"{asked.get('organization') or (who or {}).get('name')}/{asked['name']}"
    if not _may_write(who, name):
        return 403, {"error": "Forbidden"}
    if name in hub.repositories:
        return 409, {"error": "exists", "url": f"{hub.url}/{name}"}
    hub.repositories[name] = Repository(private=asked.get("visibility") == "private" or bool(asked.get("private")))
    return 200, {"url": f"{hub.url}/{name}", "name": name}


def _may_write(who: dict[str, Any] | None, name: str) -> bool:
    owners = [who["name"], *(org["name"] for org in who["orgs"])] if who else []
    return bool(who) and name.partition("/")[0] in owners and who["auth"]["accessToken"]["role"] == "write"


def _files(held: Repository) -> list[dict[str, Any]]:
    found = []
    for name, content in sorted(held.files.items()):
        about: dict[str, Any] = {"rfilename": name, "size": len(content)}
        about["blobId"] = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
        if name.endswith(LARGE):
            about["lfs"] = {
                "sha256": hashlib.sha256(content).hexdigest(),
                "oid": hashlib.sha256(content).hexdigest(),
                "size": len(content),
                "pointerSize": 134,
            }
        found.append(about)
    return found


def _mode(path: str) -> dict[str, Any]:
    return {"path": path, "uploadMode": "lfs" if path.endswith(LARGE) else "regular", "shouldIgnore": False}


def _batch(hub: Hub, asked: dict[str, Any]) -> dict[str, Any]:
    there = asked["oid"] in hub.large
    return asked if there else {**asked, "actions": {"upload": {"href": f"{hub.url}/lfs/{asked['oid']}"}}}


def _commit(hub: Hub, held: Repository, name: str, body: bytes) -> tuple[int, Any]:
    files = dict(held.files)
    summary = ""
    for line in body.splitlines():
        one = json.loads(line)
        value = one["value"]
        if one["key"] == "header":
            summary = value["summary"]
        elif one["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif one["key"] == "lfsFile":
            if value["oid"] not in hub.large:
                return 400, {"error": f"{value['path']} was not uploaded"}
            files[value["path"]] = hub.large[value["oid"]]
        elif one["key"] == "deletedFile":
            del files[value["path"]]
    held.files = files
    held.commits.append(summary)
    return 200, {"commitUrl": f"{hub.url}/{name}/commit/{held.sha}", "commitOid": held.sha, "success": True}
