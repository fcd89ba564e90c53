"""``VllmServerEngine``: one or more ``vllm serve``, token ids in and out over HTTP.

Covered: several servers, balanced by requests in flight, with the turns of an episode going to the server that holds
its prefix; lost connections, overload, servers that die and come back, which get the newest weights before any request
(``vllm_server_fleet``); log-probabilities as the protocol promises them, or a refusal; new weights through a folder
that trainer and servers share (a tmpfs is enough). Not covered: weights sent over NCCL or RCCL, servers other than vLLM
(they return no token ids), starting the servers.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.http import HttpClient
from rstar2_env.core.retries import delay
from rstar2_env.rollout.engine import EngineStats, Generation, SamplingParams, TurnTimeoutError
from rstar2_env.rollout.engines.vllm_engine import SEED_BITS, check_temperature
from rstar2_env.rollout.engines.vllm_server_facts import NEUTRAL, ServerFacts, find_facts, read_metrics, stats_of
from rstar2_env.rollout.engines.vllm_server_fleet import Fleet, Server, chain_of
from rstar2_env.rollout.engines.weights import write_weights


class VllmServerEngine:
    """Generates with ``vllm serve``, on this machine or others.

    Args:
        base_urls: Address of each server, without ``/v1``; a single one may be a string. All must serve the same model.
        model: The name under which they serve it; ``None`` takes the first.
        weights_dir: Folder that trainer and servers see under the same path, preferably on a tmpfs: ``update_weights``
            writes there, and the servers read it; the newest weights stay there for servers that restart, until
            ``close``. The servers must run in development mode (``VLLM_SERVER_DEV_MODE=1``), in which anyone who can
            reach them can control them: keep them on a private network.
        api_key_env: Environment variable that holds the servers' API key, if they require one.
        timeout_s: Maximum time for one turn, in seconds.
        retries: Further attempts when a server is lost or overloaded.
        wait_s: Seconds to wait, at the start, for servers that do not answer yet.
        patience_s: Seconds that requests and new weights wait, later, while no server answers. A server that comes back
            gets the newest weights before any request.
        seed: Seeds the draws of requests without a seed of their own.

    Raises:
        MissingExtraError: httpx is not installed.
        ServiceError: A server does not answer, or is not vLLM.
        ConfigurationError: The servers do not serve the same model.
    """

    def __init__(
        self,
        base_urls: str | Sequence[str],
        *,
        model: str | None = None,
        weights_dir: str | Path | None = None,
        api_key_env: str = "VLLM_API_KEY",
        timeout_s: float = 600.0,
        retries: int = 4,
        wait_s: float = 60.0,
        patience_s: float = 600.0,
        seed: int = 0,
    ) -> None:
        bases = [base_urls] if isinstance(base_urls, str) else list(base_urls)
        if not bases or not all(base.startswith(("http://", "https://")) for base in bases):
            raise ConfigurationError(
                f"base_urls must be one or more addresses such as http://127.0.0.1:8000, not {base_urls!r}."
            )
        bases = [base.rstrip("/").removesuffix("/v1") for base in bases]
        self._weights_dir = None if weights_dir is None else Path(weights_dir).resolve()
        self._seeds = np.random.SeedSequence(seed)
        self._run_id = uuid.uuid4().hex
        self._version = 0
        self._retries = retries
        # The same in every process of a run, so that each finds the weights that the first one wrote.
        self._fleet_id = hashlib.sha256("\n".join(sorted(bases)).encode()).hexdigest()[:12]
        self._written: Path | None = None
        self._losses = 0
        self._http = HttpClient(
            needed_for="The engine 'vllm-server'",
            extra="remote",
            timeout_s=timeout_s,
            retries=retries,
            api_key=os.environ.get(api_key_env),
        )
        try:
            facts = self._http.run_now(self._find(bases, model, wait_s))
        except BaseException:
            self._http.close()
            raise
        # Everything below is accessed only in the event loop of the HTTP client.
        servers = [Server(base, found) for base, found in zip(bases, facts, strict=True)]
        self._fleet = Fleet(self._http, servers, self._readmit, patience_s=patience_s)
        self._ready = asyncio.Event()
        self._ready.set()

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of a prompt and its turn together."""
        return min(server.facts.max_model_len for server in self._fleet.servers)

    @property
    def copies(self) -> int:
        """Number of servers that can be asked, each with weights of its own."""
        return len(self._fleet.up) or 1

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Continue ``ids`` at the server that caches most of them, unless it has many more requests than another.

        ``policy_version`` is the version of the weights when the request was sent.

        Raises:
            ConfigurationError: The prompt is empty or too long, or the servers cannot give the log-probabilities that
                the protocol promises for these parameters.
            TurnTimeoutError: The turn took more than ``timeout_s``, at a server that is there.
            ServiceError: No attempt was answered, or the server refused the request.
        """
        self._check(ids, params)
        seed = params.seed
        if seed is None:
            seed = int(self._seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
        return await self._http.run(self._generate(list(ids), params, seed % (1 << SEED_BITS)))

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Record the version; with ``weights``, write them to ``weights_dir`` and make every server load them.

        Returns when all servers that can be reached have loaded them; new requests wait meanwhile. A server that is
        lost loads them when it comes back, before any request. Requests in flight continue with the new weights and the
        cache of the old ones; later requests do not reuse a prefix cache of the old weights.

        Args:
            version: Reported by every generation sent from now on.
            weights: A module, or the contents of its ``state_dict``: a mapping or an iterable of names and tensors,
                with tied ones under both names.

        Raises:
            ConfigurationError: There is no ``weights_dir``.
            ServiceError: A server refused them, or none has answered for ``patience_s``.
        """
        if weights is None:
            self._version = version
            return
        if self._weights_dir is None:
            raise ConfigurationError(
                "The servers can load new weights only from a folder: pass weights_dir=, a folder that they see "
                "under the same path (/dev/shm on one machine), and start them with VLLM_SERVER_DEV_MODE=1."
            )
        before, self._written = self._written, self._folder(version)
        try:
            shutil.rmtree(self._written, ignore_errors=True)  # of a run that was killed
            part = self._written.with_name(f"{self._written.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            write_weights(weights, part)
            part.rename(self._written)
            self._http.run_now(self._push(version))
        except BaseException:
            shutil.rmtree(self._written, ignore_errors=True)
            self._written = None if before == self._written else before
            raise
        for old in self._weights_dir.glob(self._folder("*").name):
            if old != self._written:
                shutil.rmtree(old, ignore_errors=True)

    def capacity(self) -> int:
        """Total number of tokens that fit into the servers' KV caches.

        Raises:
            ServiceError: A server does not report its capacity.
        """
        found = [server.facts.capacity for server in self._fleet.servers]
        if None in found:
            raise ServiceError("A server's /metrics does not report its KV cache; start it with metrics enabled.")
        return sum(tokens for tokens in found if tokens is not None)

    def stats(self) -> EngineStats:
        """The load and counters of all servers together, requested from them now.

        Raises:
            ServiceError: A server does not answer, or was lost since the last time: it counts from 0 again.
        """
        servers = self._fleet.servers
        before, self._losses = self._losses, sum(server.losses for server in servers)
        if self._losses != before:
            raise ServiceError("A server was lost since its counters were read, and counts from 0 again.")

        async def every() -> list[list[tuple[str, dict[str, str], float]]]:
            return await asyncio.gather(*(read_metrics(self._http, server.base) for server in servers))

        return stats_of([line for lines in self._http.run_now(every()) for line in lines])

    async def loads(self) -> list[EngineStats]:
        """The load of each server that is there, requested from them now; see ``loads_of``."""
        return await self._http.run(self._fleet.loads())

    def close(self) -> None:
        """Cancel requests in flight and close the connections; the servers keep running."""
        self._http.close()
        if self._written is not None:
            shutil.rmtree(self._written, ignore_errors=True)
            self._written = None

    def _folder(self, version: int | str) -> Path:
        assert self._weights_dir is not None  # whoever asks has checked it
        return self._weights_dir / f"rstar2-weights-{self._fleet_id}-{version}"

    async def _find(self, bases: Sequence[str], model: str | None, wait_s: float) -> list[ServerFacts]:
        async def one(base: str) -> ServerFacts:
            until = time.monotonic() + wait_s
            while True:
                try:
                    return await find_facts(self._http, base, model, retries=0)
                except ServiceError:
                    if time.monotonic() >= until:
                        raise
                await asyncio.sleep(0.5)

        facts = await asyncio.gather(*(one(base) for base in bases))
        names = sorted({found.model for found in facts})
        if len(names) > 1:
            raise ConfigurationError(f"The servers serve different models: {', '.join(names)}; choose one with model=.")
        return list(facts)

    def _check(self, ids: Sequence[int], params: SamplingParams) -> None:
        if not ids:
            raise ConfigurationError("An engine cannot continue an empty prompt.")
        if len(ids) >= self.max_model_len:
            raise ConfigurationError(
                f"The conversation has {len(ids)} tokens; the servers accept {self.max_model_len}, including the turn "
                "to generate: start them with a larger --max-model-len, or lower the token budget of an episode."
            )
        check_temperature(params.temperature)
        facts = [server.facts for server in self._fleet.servers]
        if params.temperature not in (0.0, 1.0) and not all(found.scaled for found in facts):
            raise ConfigurationError(
                "A server's log-probabilities do not take the temperature into account: start it with "
                "--logprobs-mode processed_logprobs, or sample at temperature 1."
            )
        if (params.top_k or params.top_p < 1) and params.temperature and not all(found.full for found in facts):
            raise ConfigurationError(
                "With top_p or top_k a server normalises log-probabilities over the remaining tokens, not over "
                "all: sample with top_p=1 and top_k=0, or start it with VLLM_SERVER_DEV_MODE=1 "
                "VLLM_USE_V2_MODEL_RUNNER=0 and "
                "--worker-extension-cls rstar2_env.rollout.engines.vllm_worker.FullLogprobs."
            )

    async def _generate(self, ids: list[int], params: SamplingParams, seed: int) -> Generation:
        await self._ready.wait()
        self._fleet.watch()
        body = {
            **NEUTRAL,
            "model": self._fleet.servers[0].facts.model,
            "prompt": ids,
            "max_tokens": min(params.max_tokens, self.max_model_len - len(ids)),
            "temperature": params.temperature,
            "top_p": params.top_p,
            "top_k": params.top_k,
            "seed": seed,
            "stop": list(params.stop),
            "stop_token_ids": list(params.stop_ids),
            # Only the requested ids end a turn, whatever the model's own configuration says.
            "ignore_eos": True,
            "include_stop_str_in_output": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            "logprobs": 0,
            "return_token_ids": True,
        }
        chain = chain_of(ids) if len(self._fleet.servers) > 1 else []
        answer, server, version = await self._ask(body, chain)
        generation = _generation(answer, server.base, version)
        if chain:
            self._fleet.remember(chain_of(ids + generation.ids), server)
        return generation

    async def _ask(self, body: dict[str, Any], chain: Sequence[int]) -> tuple[Any, Server, int]:
        """Ask for a generation until a server answers; waiting for a lost one is no attempt."""
        failed: list[str] = []
        after_s: float | None = None
        while True:
            await self._fleet.any_up()
            server = self._fleet.choose(chain, failed)
            if server.base in failed:
                await asyncio.sleep(delay(len(failed)) if after_s is None else after_s)
                if not server.up:
                    continue
            version = self._version
            # Separates the prefix cache of this version of the weights from those of others.
            body["cache_salt"] = f"{self._run_id} {version}"
            self._fleet.remember(chain, server)
            server.in_flight += 1
            try:
                answer = await self._http.ask("POST", server.base, "/v1/completions", body, retries=0)
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
                return answer, server, version
            finally:
                server.in_flight -= 1

    async def _push(self, version: int) -> None:
        self._ready.clear()
        try:
            self._fleet.watch()
            await self._fleet.any_up()
            outcomes = await asyncio.gather(*map(self._load, self._fleet.up), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
            # Those that were lost meanwhile get the new weights when they are readmitted.
            await self._fleet.any_up()
            self._version = version
            self._fleet.forget_prefixes()
        finally:
            self._ready.set()

    async def _load(self, server: Server) -> None:
        """Make a server load the newest weights; one that is lost on the way is taken out."""
        order = {"method": "reload_weights", "kwargs": {"weights_path": str(self._newest())}}
        try:
            await self._http.ask("POST", server.base, "/collective_rpc", order)
        except ServiceError as error:
            if error.cause == "lost":
                self._fleet.lost(server, str(error))
                return
            hint = " Was the server started with VLLM_SERVER_DEV_MODE=1?" if "404" in str(error) else ""
            raise ServiceError(f"A server did not load the new weights.{hint} {error}") from error

    async def _readmit(self, server: Server) -> None:
        """Look at a server that has come back, and give it the newest weights: it may have begun with others.

        Raises:
            ServiceError: It does not answer, or there are no weights for it yet.
            ConfigurationError: It serves another model.
        """
        facts = await find_facts(self._http, server.base, server.facts.model, retries=0)
        newest = self._newest()
        if newest is not None:
            order = {"method": "reload_weights", "kwargs": {"weights_path": str(newest)}}
            await self._http.ask("POST", server.base, "/collective_rpc", order, retries=0)
            if newest != self._newest():
                raise ServiceError("Newer weights were written meanwhile.")
        server.facts = facts

    def _newest(self) -> Path | None:
        """The folder of the newest weights; ``None`` if the servers keep those that they were started with.

        Raises:
            ServiceError: Another process of the run is still writing them.
        """
        if self._written is not None or self._weights_dir is None:
            return self._written
        shared = self._folder(self._version)
        if shared.exists():
            return shared
        if self._version:
            raise ServiceError(f"The weights of version {self._version} are not in {self._weights_dir} yet.")
        return None


def _generation(answer: Any, base: str, version: int) -> Generation:
    choice = answer["choices"][0] if isinstance(answer, Mapping) and answer.get("choices") else {}
    ids, logprobs = choice.get("token_ids"), (choice.get("logprobs") or {}).get("token_logprobs")
    if ids is None or logprobs is None or len(ids) != len(logprobs):
        raise ServiceError(
            f"{base} returns no token ids with log-probabilities; rollouts need `vllm serve`, version 0.22 or newer."
        )
    reason = choice.get("finish_reason")
    if reason not in ("stop", "length"):
        raise ServiceError(f"{base} ended a request on its own: {reason}.")
    return Generation(list(ids), list(map(float, logprobs)), "stop" if reason == "stop" else "length", version)
