"""With a folder on each serving machine, new weights leave the shared folder once for each machine.

Each machine is an address of the loopback network with two servers and a folder; the servers run the code of vLLM's
workers, and the test counts the bytes that they read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from flaky_server import Answer, Asked, FlakyServer, flaky
from safetensors.torch import load_file

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.rollout import VllmServerEngine
from rstar2_env.rollout.engines.vllm_worker import FullLogprobs

pytest.importorskip("httpx", reason="servers need the extra 'remote'")

HOSTS = ("127.0.0.1", "127.0.0.2")
RELAY = "/relay"
"""The folder of each machine, as the trainer names it; a server of the test finds it in the folder of its machine."""
WEIGHTS = {"a": torch.arange(500.0), "b": torch.ones(30)}


class Server(FullLogprobs):
    """A server whose worker has the extension.

    Attributes:
        folder: The folder of its machine.
        shared: The folder that every machine shares.
        read: Bytes that it read from the shared folder.
        loaded: The weights that it loaded last, and the folder of each load.
        dies_at: The order at which it drops the connection.
        extended: Whether its worker has the extension.
    """

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder, self.shared, self.local_rank = folder, shared, 0
        self.read, self.loaded, self.places = 0, {}, []
        self.dies_at, self.extended = "", True
        self.http: FlakyServer

    def __call__(self, asked: Asked, number: int) -> Answer:
        if asked.path == "/v1/models":
            return 200, {"data": [{"id": "m", "max_model_len": 512}]}
        if asked.path == "/metrics":
            return 200, 'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\n'
        if asked.path == "/health":
            return (200, "") if not self.dies_at.startswith("dead") else None
        if asked.path != "/collective_rpc":
            body = asked.body
            return 200, {"choices": [{"logprobs": {"top_logprobs": [{"a": -1.0}]}} for _ in body["prompt"]]}
        method, given = asked.body["method"], asked.body.get("kwargs", {})
        if method == self.dies_at:
            self.dies_at = "dead"
            return None
        if method == "reload_weights":
            return self._load(Path(given["weights_path"]))
        if not self.extended or not hasattr(self, method):
            return 500, {"error": f"the worker has no method {method}"}
        if "into" in given:
            given = {**given, "into": str(self.folder)}
        answer = getattr(self, method)(**given)
        if method == "copy_weights":
            self.read += answer["copied"]
        return 200, {"results": [answer]}

    def _load(self, path: Path) -> Answer:
        if path.parent == Path(RELAY):
            path = self.folder / path.name
        self.places.append(path.parent)
        self.loaded = {}
        for file in path.iterdir():
            self.loaded |= load_file(file)
            self.read += file.stat().st_size if path.parent == self.shared else 0
        return 200, {"results": [None]}


Serve = Callable[..., VllmServerEngine]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def servers(tmp_path: Path, shared: Path) -> Iterator[list[Server]]:
    """Two servers on each of two machines."""
    with ExitStack() as stack:
        found = []
        for host in HOSTS:
            (tmp_path / host).mkdir()
            for _ in range(2):
                server = Server(tmp_path / host, shared)
                server.http = stack.enter_context(flaky(server, host))
                found.append(server)
        yield found


@pytest.fixture
def serve(servers: list[Server], shared: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(**options: Any) -> VllmServerEngine:
            chosen = {"retries": 0, "timeout_s": 30, "start_timeout_s": 0, "weights_dir": shared, **options}
            engine = VllmServerEngine([server.http.address for server in servers], **chosen)
            stack.callback(engine.close)
            return engine

        yield start


def written(shared: Path) -> int:
    """Bytes of the newest weights in the shared folder."""
    return sum(file.stat().st_size for file in shared.glob("*/*.safetensors"))


def holds(server: Server, weights: dict[str, torch.Tensor]) -> bool:
    return server.loaded.keys() == weights.keys() and all(
        torch.equal(server.loaded[name], value) for name, value in weights.items()
    )


@pytest.mark.parametrize(("options", "times"), [({}, 4), ({"relay_dir": RELAY}, 2)], ids=["every server", "relay"])
def test_bytes_leave_the_shared_folder_once_for_each_reader(
    serve: Serve, servers: list[Server], shared: Path, options: dict[str, Any], times: int
) -> None:
    engine = serve(**options)
    for version in (1, 2):
        new = {name: value + version for name, value in WEIGHTS.items()}
        before = sum(server.read for server in servers)
        engine.update_weights(version, new)
        assert sum(server.read for server in servers) - before == times * written(shared)
        assert all(holds(server, new) for server in servers)


def test_a_machine_keeps_one_copy_and_none_when_the_engine_is_closed(
    serve: Serve, servers: list[Server], tmp_path: Path
) -> None:
    engine = serve(relay_dir=RELAY)
    for version in (1, 2):
        engine.update_weights(version, WEIGHTS)
        for host in HOSTS:
            (copy,) = (tmp_path / host).iterdir()
            assert copy.name.endswith(f"-{version}")
    engine.close()
    assert not [path for host in HOSTS for path in (tmp_path / host).iterdir()]


def test_another_server_of_a_machine_copies_if_the_first_is_lost(serve: Serve, servers: list[Server]) -> None:
    engine = serve(relay_dir=RELAY)
    servers[2].dies_at = "copy_weights"
    engine.update_weights(1, WEIGHTS)
    assert [bool(server.loaded) for server in servers] == [True, True, False, True]
    assert servers[3].read == servers[0].read > 0, "it read the shared folder for its machine"
    assert servers[3].places == [servers[3].folder]


def test_only_the_first_worker_of_a_server_copies(tmp_path: Path, shared: Path) -> None:
    (shared / "rstar2-weights-r-1").mkdir()
    (shared / "rstar2-weights-r-1" / "w").write_bytes(b"1234")
    server = Server(tmp_path, shared)
    server.local_rank = 1
    assert server.copy_weights(str(shared / "rstar2-weights-r-1"), str(tmp_path)) == {"copied": 0}
    assert not (tmp_path / "rstar2-weights-r-1").exists()


def test_a_server_that_cannot_copy_is_named_at_the_start(serve: Serve, servers: list[Server]) -> None:
    servers[1].extended = False
    with pytest.raises(
        ConfigurationError, match=rf"^The server {servers[1].http.address} cannot copy .*worker-extension-cls"
    ):
        serve(relay_dir=RELAY)
    servers[1].extended, servers[3].folder = True, Path("/nowhere")
    with pytest.raises(
        ConfigurationError,
        match=rf"{servers[3].http.address} cannot write into the folder",
    ):
        serve(relay_dir=RELAY)


def test_a_folder_of_each_machine_needs_a_shared_folder_and_its_transport(serve: Serve) -> None:
    with pytest.raises(ConfigurationError, match="relay_dir= needs weights_dir="):
        serve(relay_dir=RELAY, weights_dir=None)
    with pytest.raises(ConfigurationError, match="relay_dir= applies only to transport='folder'"):
        serve(relay_dir=RELAY, transport="group")


def test_a_server_that_refuses_the_copy_ends_the_sync_with_its_reason(serve: Serve, servers: list[Server]) -> None:
    engine = serve(relay_dir=RELAY)
    servers[0].extended = False
    with pytest.raises(ServiceError, match="no method copy_weights"):
        engine.update_weights(1, WEIGHTS)
