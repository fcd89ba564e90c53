"""``VllmServerEngine``: generates with one or more vLLM servers (``vllm serve``), with token ids in and out over HTTP.

Covered: several servers, balanced by requests in flight, with the turns of an episode going to the server that caches
its prefix; lost connections, overload, and restarts of servers, after which a server first gets the newest weights
(``vllm_server_fleet``); log-probabilities as ``Generation`` defines them, or an error; weight syncs
(``weight_transports``). Not covered: servers other than vLLM (they return no token ids), starting the servers.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.http import HttpClient
from rstar2_env.core.net.retries import delay
from rstar2_env.core.progress import waiting
from rstar2_env.rollout.engine import (
    Engine,
    EngineStats,
    Generation,
    SamplingParams,
    TurnTimeoutError,
    check_candidates,
    check_prompt,
)
from rstar2_env.rollout.engines.vllm_parameters import MOST_CANDIDATES, request_fields, seed_of
from rstar2_env.rollout.engines.vllm_server_facts import (
    NEUTRAL,
    ServerFacts,
    check_sampling,
    find_facts,
    generation_of,
    read_metrics,
    stats_of,
)
from rstar2_env.rollout.engines.vllm_server_fleet import Fleet, Server, chain_of
from rstar2_env.rollout.engines.weight_transports.base import Takes
from rstar2_env.rollout.engines.weight_transports.make import make_transport
from rstar2_env.rollout.engines.weight_transports.server_access import EngineLink, EngineServers
from rstar2_env.rollout.engines.weight_transports.settings import TransportSettings

_REQUEST_S = 600.0
"""Maximum seconds of a request other than a turn, such as sending one bucket of weights."""


class VllmServerEngine:
    """An inference engine that uses ``vllm serve``, on this machine or others.

    Args:
        base_urls: Address of each server, without ``/v1``; a single one may be a string. All must serve the same model.
        model: Name of the served model; ``None`` means the first one.
        transport: How new weights reach the servers: ``folder`` (as files in a folder), ``group`` (broadcast in a
            process group with the servers' workers) or ``adapter`` (only a LoRA adapter, as files in a folder). The
            servers must run in development mode (``VLLM_SERVER_DEV_MODE=1``), in which anyone who can reach them can
            control them: keep them on a private network.
        weights_dir: Folder that trainer and servers see under the same path, preferably on a tmpfs, for the transports
            ``folder`` and ``adapter``; the newest weights stay there for servers that restart, until ``close``.
            With ``group``, it is optional: the weights are written there in addition to the broadcast, because without
            them a server that restarts gets no requests before the next weight sync.
        relay_dir: Folder on each serving machine, such as ``/dev/shm``, for the transport ``folder`` with several
            machines: one server of each machine (of each host name in ``base_urls``) copies the weights into it, and
            the servers of the machine read the copy. It needs room for one copy of the weights. ``None`` lets every
            server read ``weights_dir``.
        bucket_mib: Maximum number of MiB sent or written at once, except for a larger tensor.
        group_address: Address at which the servers' machines reach this process, for ``group``; ``None`` uses this
            process's address in the network of the first server.
        fleet: Addresses of all servers that get the same weights, if several engines divide them; ``None`` means
            ``base_urls``.
        api_key_env: Environment variable that holds the servers' API key, if they require one.
        timeout_s: Maximum time for one turn in seconds, including the time in the server's queue. If a turn takes
            longer, its episode ends as ``unavailable``. Other requests may take at most 600 seconds.
        retries: Further attempts if a server is lost or overloaded.
        start_timeout_s: Seconds to wait at the start for servers that do not answer yet.
        reconnect_timeout_s: Seconds that requests and weight syncs wait during the run if no server answers. A
            server that comes back gets the newest weights before any request.
        seed: Seeds the draws of requests without a seed of their own.

    Raises:
        ServiceError: A server does not answer, or is not vLLM.
        ConfigurationError: The servers do not serve the same model.
    """

    def __init__(
        self,
        base_urls: str | Sequence[str],
        *,
        model: str | None = None,
        transport: Literal["folder", "group", "adapter"] = "folder",
        weights_dir: str | Path | None = None,
        relay_dir: str | Path | None = None,
        bucket_mib: int = 256,
        group_address: str | None = None,
        fleet: Sequence[str] | None = None,
        api_key_env: str = "VLLM_API_KEY",
        timeout_s: float = 4 * 3600.0,
        retries: int = 4,
        start_timeout_s: float = 60.0,
        reconnect_timeout_s: float = 600.0,
        seed: int = 0,
    ) -> None:
        bases = [base_urls] if isinstance(base_urls, str) else list(base_urls)
        if not bases or not all(base.startswith(("http://", "https://")) for base in bases):
            raise ConfigurationError(
                f"The option `base_urls` must be one or more addresses such as http://127.0.0.1:8000, not "
                f"{base_urls!r}."
            )
        bases = [_base(base) for base in bases]
        if relay_dir is not None and transport != "folder":
            raise ConfigurationError(
                f"The option relay_dir= applies only to transport='folder', not to {transport!r}: remove it."
            )
        if bucket_mib < 1:
            raise ConfigurationError(f"The option `bucket_mib` must be at least 1, not {bucket_mib}.")
        self._seeds = np.random.SeedSequence(seed)
        self._run_id = uuid.uuid4().hex
        self._version: int = 0
        self._renewed = False
        self._retries, self._turn_s = retries, timeout_s
        self._losses = 0
        self._http = HttpClient(
            timeout_s=min(timeout_s, _REQUEST_S),
            retries=retries,
            api_key=os.environ.get(api_key_env),
        )
        # The same in every process of a run, so that all of them find the weights that the first process wrote.
        every = sorted(map(_base, bases if fleet is None else fleet))
        self._fleet_id = hashlib.sha256("\n".join(every).encode()).hexdigest()[:12]
        setting = TransportSettings(
            self._http,
            self._fleet_id,
            lambda: self._version,
            None if weights_dir is None else Path(weights_dir).resolve(),
            relay=None if relay_dir is None else Path(relay_dir),
            bucket_bytes=bucket_mib << 20,
            address=group_address,
            timeout_s=min(timeout_s, _REQUEST_S),
        )
        self._transport = make_transport(transport, setting)
        try:
            facts = self._http.run_now(self._find(bases, model, start_timeout_s))
        except BaseException:
            self._http.close()
            raise
        # Everything below is accessed only in the event loop of the HTTP client.
        servers = [Server(base, found) for base, found in zip(bases, facts, strict=True)]
        self._fleet = Fleet(self._http, servers, self._readmit, reconnect_timeout_s=reconnect_timeout_s)
        self._ready = asyncio.Event()
        self._ready.set()
        self._link = EngineLink(self._http, self._fleet, self._ready, self._renew)

    @property
    def takes(self) -> Takes:
        """The weights that ``update_weights`` needs from a policy with a LoRA adapter: all weights, or the adapter."""
        return self._transport.takes

    @property
    def most_candidates(self) -> int:
        """Maximum value of ``SamplingParams.candidates`` that servers accept by default."""
        return MOST_CANDIDATES

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and turn together."""
        return min(server.facts.max_model_len for server in self._fleet.servers)

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Generate the turn that follows ``ids``, preferably on the server that caches the longest prefix of them.

        If that server has many more requests than another, the other one is used. ``policy_version`` in the result is
        the version of the weights when the request was sent.

        Raises:
            ConfigurationError: The prompt is empty or too long, or the servers cannot report log-probabilities as
                ``Generation`` defines them for these parameters.
            TurnTimeoutError: The turn took more than ``timeout_s`` on a server that still answers.
            ServiceError: All attempts failed, or the server refused the request.
        """
        self._check(ids, params)
        return await self._http.run(self._generate(list(ids), params, seed_of(params, self._seeds)))

    async def generate_on_each(self, ids: Sequence[int], params: SamplingParams) -> list[Generation]:
        """Generate a turn after ``ids`` on every server that is up, to check that all have the same weights.

        A server that is lost meanwhile is skipped. Raises the errors of ``generate``.
        """
        self._check(ids, params)
        return await self._http.run(self._on_each(list(ids), params, seed_of(params, self._seeds)))

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Record the version of the weights; if ``weights`` is given, send it to every server.

        Returns when all reachable servers have loaded them; new requests wait meanwhile. A lost server loads them when
        it comes back, before any request. Requests in flight continue with the new weights and the cache of the old
        weights (with adapters: with the old weights); later requests do not reuse a prefix cache of the old weights.

        Args:
            version: Reported by every generation sent from now on.
            weights: A module, or the contents of its ``state_dict``: a mapping or an iterable of names and tensors,
                with tied weights under each of their names. A tensor of an iterable may become invalid when the next
                one is requested. For the transport ``adapter``, an ``Adapter``.

        Raises:
            ConfigurationError: The transport lacks an option, or cannot send these weights.
            ServiceError: A server refused the weights, or no server has answered for ``reconnect_timeout_s``. If the
                error has a ``cause``, servers were lost during the sync, and another attempt may succeed.
        """
        if weights is None:
            # Another process of the run sends them.
            self._version, self._renewed = version, True
        else:
            self.update_together([self], version, weights)

    def goes_with(self, engines: Sequence[Engine]) -> bool:
        """Whether one weight sync can update this engine and ``engines``: their servers must belong to one fleet."""
        return all(isinstance(engine, VllmServerEngine) and engine._fleet_id == self._fleet_id for engine in engines)

    def update_together(self, engines: Sequence[Engine], version: int, weights: Any) -> None:
        """Send weights to the servers of several engines at once; see ``update_weights``."""
        links = [engine._link for engine in engines if isinstance(engine, VllmServerEngine)]
        self._transport.send(version, weights, EngineServers(links))

    def capacity(self) -> int:
        """Total number of tokens that fit into the servers' KV caches.

        Raises:
            ServiceError: A server does not report its capacity.
        """
        servers = self._fleet.servers
        if silent := [server.base for server in servers if server.facts.capacity is None]:
            raise ServiceError(
                f"The page /metrics of the server {silent[0]} does not report the size of its KV cache: start the "
                "server with metrics enabled."
            )
        return sum(server.facts.capacity or 0 for server in servers)

    def stats(self) -> EngineStats:
        """Request the load and counters of all servers, and return their sums.

        Raises:
            ServiceError: A server does not answer, or was lost since the last call, so that its counters may have
                restarted at 0.
        """
        servers = self._fleet.servers
        before, self._losses = self._losses, sum(server.losses for server in servers)
        if self._losses != before:
            raise ServiceError(
                f"One of the vLLM servers ({', '.join(server.base for server in servers)}) could not be used for a "
                "time after its counters were last read. The counters may have restarted at 0, so they cannot be "
                "compared with the last reading."
            )

        async def every() -> list[list[tuple[str, dict[str, str], float]]]:
            return await asyncio.gather(*(read_metrics(self._http, server.base) for server in servers))

        return stats_of([line for lines in self._http.run_now(every()) for line in lines])

    async def loads(self) -> list[EngineStats]:
        """Request the load of each server; return the loads of the servers that answer."""
        return await self._http.run(self._fleet.loads())

    def close(self) -> None:
        """Cancel requests in flight and close the connections; the servers keep running."""
        self._transport.close()
        self._http.close()

    def _renew(self, version: int) -> None:
        """Record that every server has the weights of ``version``; called in the event loop of the HTTP client."""
        self._version, self._renewed = version, True
        self._fleet.forget_prefixes()

    async def _find(self, bases: Sequence[str], model: str | None, start_timeout_s: float) -> list[ServerFacts]:
        async def one(base: str) -> ServerFacts:
            until = time.monotonic() + start_timeout_s
            with waiting(f"the vLLM server {base}") as report:
                while True:
                    try:
                        facts = await find_facts(self._http, base, model, retries=0)
                        await self._transport.check(base)
                        return facts
                    except ServiceError as error:
                        if time.monotonic() >= until:
                            raise
                        report(str(error))
                    await asyncio.sleep(0.5)

        facts = await asyncio.gather(*(one(base) for base in bases))
        names = sorted({found.model for found in facts})
        if len(names) > 1:
            raise ConfigurationError(
                f"The servers serve different models: {', '.join(names)}; choose one with the option model=."
            )
        return list(facts)

    def _check(self, ids: Sequence[int], params: SamplingParams) -> None:
        check_prompt(ids, self.max_model_len)
        check_candidates(self, params.candidates)
        check_sampling([server.facts for server in self._fleet.servers], params)

    async def _on_each(self, ids: list[int], params: SamplingParams, seed: int) -> list[Generation]:
        while True:
            await self._fleet.any_up()
            asked = [self._generate(ids, params, seed, server) for server in self._fleet.up]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            found = [one for one in answers if not isinstance(one, BaseException)]
            wrong = [one for one in answers if isinstance(one, BaseException) and not _lost(one)]
            if wrong:
                raise wrong[0]
            if found:
                return found

    async def _generate(
        self, ids: list[int], params: SamplingParams, seed: int, at: Server | None = None
    ) -> Generation:
        """Generate on the server ``at``; ``None`` lets the fleet choose a server."""
        await self._ready.wait()
        self._fleet.watch()
        body = {
            **NEUTRAL,
            **request_fields(params, seed, self.max_model_len - len(ids)),
            "prompt": ids,
            "return_token_ids": True,
            # Two tokens may have the same text.
            "return_tokens_as_token_ids": params.candidates > 0,
        }
        chain = chain_of(ids) if len(self._fleet.servers) > 1 else []
        answer, server, version = await self._ask(body, chain, at)
        generation = generation_of(answer, server.base, version, params)
        if chain:
            self._fleet.remember(chain_of(ids + generation.ids), server)
        return generation

    async def _ask(self, body: dict[str, Any], chain: Sequence[int], at: Server | None) -> tuple[Any, Server, int]:
        """Request a generation until a server answers; waiting for a lost server does not count as an attempt.

        Args:
            body: The request; the model's name and the salt of the prefix cache are filled in.
            chain: Hashes of the prompt's blocks, to find the server that caches them.
            at: The server to use; ``None`` chooses one.

        Returns:
            The answer, the server, and the version of the weights when the request was sent.
        """
        failed: list[str] = []
        after_s: float | None = None
        while True:
            if at is not None and not at.up:
                raise ServiceError(f"The vLLM server {at.base} cannot be used now: {at.why}", cause="lost")
            await self._fleet.any_up()
            server = at or self._fleet.choose(chain, failed)
            if server.base in failed:
                await asyncio.sleep(delay(len(failed)) if after_s is None else after_s)
                if not server.up:
                    continue
            version = self._version
            served = self._fleet.servers[0].facts.model
            body["model"] = self._transport.served_as(served, version) if self._renewed else served
            # Separates the prefix caches of different versions of the weights.
            body["cache_salt"] = f"{self._run_id} {version}"
            self._fleet.remember(chain, server)
            server.in_flight += 1
            losses = server.losses
            try:
                answer = await server.until_lost(
                    self._http.ask("POST", server.base, "/v1/completions", body, timeout_s=self._turn_s, retries=0)
                )
            except ServiceError as error:
                if not error.cause:
                    raise
                if error.cause == "late" and await self._fleet.answers(server):
                    raise TurnTimeoutError(str(error)) from error
                failed.append(server.base)
                if error.cause in ("lost", "late"):
                    self._fleet.lost(server, str(error))
                else:
                    await self._fleet.look_at(server)
                if len(failed) > self._retries:
                    raise ServiceError(f"{error} ({len(failed)} attempts)", cause=error.cause) from error
                after_s = error.after_s
            else:
                if server.losses == losses:
                    return answer, server, version
                # The server restarted after the request was sent, and answered without the newest weights.
                failed.append(server.base)
                after_s = None
            finally:
                server.in_flight -= 1

    async def _readmit(self, server: Server) -> None:
        """Check a server that has come back, and send it the newest weights, since it may have other weights.

        Raises:
            ServiceError: The server does not answer, or there are no weights for it yet.
            ConfigurationError: The server serves another model.
        """
        facts = await find_facts(self._http, server.base, server.facts.model, retries=0)
        await self._transport.restore(server)
        server.facts = facts


def _base(address: str) -> str:
    return address.rstrip("/").removesuffix("/v1")


def _lost(error: BaseException) -> bool:
    return isinstance(error, ServiceError) and error.cause == "lost"
