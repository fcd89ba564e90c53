"""Environments on the nodes of a Ray cluster, played through local ``reset`` and ``step``.

    envs = RayEnvs("rstar2/MathTool-v0", address="auto")
    with Player(envs, engine, chat, sampling=...) as player:
        episodes = player.play(requests)
    envs.close()

Covered: any Gymnasium text environment that can be made on the nodes; many environments in the threads of one actor;
nodes that join and die. Not covered: methods of a remote environment other than ``reset``, ``step``, ``render`` and
``close``, and its problems: a trainer starts episodes by seed instead of iterating over the problems.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import gymnasium as gym

from rstar2_env.core.closing import Closing
from rstar2_env.core.errors import ConfigurationError, EpisodeOverError, Rstar2Error, SandboxUnavailableError
from rstar2_env.core.net import ray_cluster
from rstar2_env.core.options.declare import Count, Rule, Seconds, checked

T = TypeVar("T")

_TRIES = 3
_STOP_S = 10.0


class NodeLostError(Rstar2Error, RuntimeError):
    """An episode was lost, because its node died or did not answer in time; ``reset`` starts a new episode."""


class _Stage:
    """A Ray actor: it makes environments, numbered by ``key``, and runs each call of their methods in a thread."""

    def __init__(self, make_env: Callable[..., gym.Env[str, str]] | str) -> None:
        self._make_env = make_env
        self._envs: dict[int, gym.Env[str, str]] = {}

    def make(self, key: int, options: Mapping[str, Any]) -> dict[str, Any]:
        """Make an environment, and return its attributes that ``RemoteEnv`` exposes."""
        from rstar2_env.wrappers.make import make_env

        env = make_env(self._make_env, **options)
        self._envs[key] = env
        return {
            "observation_space": env.observation_space,
            "action_space": env.action_space,
            "metadata": dict(env.metadata),
            "render_mode": env.render_mode,
        }

    def call(self, key: int, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of an environment."""
        return getattr(self._envs[key], method)(*arguments, **named)

    def drop(self, key: int) -> None:
        """Close an environment."""
        env = self._envs.pop(key, None)
        if env is not None:
            env.close()

    def stop(self) -> None:
        """Close every environment."""
        for key in list(self._envs):
            with contextlib.suppress(Exception):  # a failed close must not keep the others open
                self.drop(key)


@dataclass(eq=False, slots=True)
class _Seat:
    """An actor on a node, and the number of environments that were placed in the actor."""

    node: ray_cluster.RayNode
    actor: Any
    envs: int = 0


class RayEnvs(Closing):
    """Makes environments that live on the nodes of a Ray cluster; use it as ``make_env``, and close it afterwards.

    Each environment is placed on the node with the fewest environments per CPU. Nodes that join later are used too.
    When a node dies, its episodes end with ``NodeLostError``, and the next ``reset`` uses a live node.

    Args:
        make_env: A Gymnasium id, or a function that makes an environment; it is sent to the nodes, on which its imports
            must be installed.
        address: Address of the cluster; see ``rstar2_env.core.net.ray_cluster.join``.
        resource: Use only nodes that offer this resource in Ray; ``None`` for every node with CPUs.
        actors_per_node: Number of processes that share a node's environments; use several if the interpreter lock is
            the bottleneck.
        threads: Number of concurrent calls in one actor.
        reserve_cpus: Number of CPUs that Ray reserves for each actor.
        call_timeout_s: Seconds that one ``reset`` or ``step`` may take before its episode is given up; ``None`` for no
            limit.
        watch_s: Seconds between two queries for the nodes of the cluster.

    Raises:
        ConfigurationError: An option is out of its range, or the process is connected to another cluster.
        MissingExtraError: Ray is not installed.
        SandboxUnavailableError: The cluster cannot be reached, or no node offers CPUs and the ``resource``.
    """

    @checked
    def __init__(
        self,
        make_env: Callable[..., gym.Env[str, str]] | str,
        *,
        address: str | None = None,
        resource: str | None = None,
        actors_per_node: Count = 1,
        threads: Count = 256,
        reserve_cpus: Annotated[float, Rule(least=0)] = 0.0,
        call_timeout_s: Seconds | None = None,
        watch_s: Seconds = 1.0,
    ) -> None:
        if not isinstance(make_env, str) and not callable(make_env):
            raise ConfigurationError(f"make_env must be a Gymnasium id or a function, not {make_env!r}.")
        self._make_env, self._resource = make_env, resource
        self._per_node, self._threads, self._reserve_cpus = actors_per_node, threads, reserve_cpus
        self._call_timeout_s, self._watch_s = call_timeout_s, watch_s
        self._lock = threading.Lock()
        self._seats: list[_Seat] = []
        self._keys = itertools.count()
        self._looked = float("-inf")
        self._closed = False
        ray_cluster.join(address, "RayEnvs")
        try:
            with self._lock:
                self._look()
        except BaseException:
            self.close()
            raise

    def __call__(self, **options: Any) -> RemoteEnv:
        """Make an environment on a node, with the given options."""
        return RemoteEnv(self, options)

    def close(self) -> None:
        """End every environment and its actor. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            seats, self._seats = self._seats, []
        with contextlib.suppress(Exception):  # the cluster may be gone
            ray = ray_cluster.connected()
            if ends := [seat.actor.stop.remote() for seat in seats]:
                ray.wait(ends, num_returns=len(ends), timeout=_STOP_S)
            for seat in seats:
                ray.kill(seat.actor, no_restart=True)
        ray_cluster.leave()

    def _take(self) -> _Seat:
        """Choose the actor for one more environment, and count the environment."""
        with self._lock:
            if self._closed:
                raise SandboxUnavailableError("This RayEnvs object is closed: create a new one.")
            if time.monotonic() - self._looked > self._watch_s or not self._seats:
                self._look()
            seat = min(self._seats, key=lambda seat: seat.envs / seat.node.cpus)
            seat.envs += 1
            return seat

    def _leave(self, seat: _Seat) -> None:
        with self._lock:
            seat.envs -= 1

    def _lose(self, seat: _Seat) -> None:
        """Remove a lost actor; the next query for nodes starts a new one if the node is alive."""
        with self._lock:
            if seat in self._seats:
                self._seats.remove(seat)
                self._looked = float("-inf")

    def _look(self) -> None:
        """Query the nodes; drop the actors of dead nodes, and start actors until each node has ``actors_per_node``."""
        nodes = ray_cluster.living_nodes(self._resource)
        alive = {node.id for node in nodes}
        self._seats = [seat for seat in self._seats if seat.node.id in alive]
        for node in nodes:
            for _ in range(self._per_node - sum(seat.node.id == node.id for seat in self._seats)):
                actor = ray_cluster.actor_on(
                    node, _Stage, self._make_env, threads=self._threads, cpus=self._reserve_cpus
                )
                self._seats.append(_Seat(node, actor))
        if not self._seats:
            raise SandboxUnavailableError(ray_cluster.no_node(self._resource))
        self._looked = time.monotonic()


def _retried(call: Callable[[], T]) -> T:
    """Return the result of a function; on ``NodeLostError``, call it again, up to ``_TRIES`` times in all."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(NodeLostError):
            return call()
    return call()


class RemoteEnv(gym.Env[str, str]):
    """An environment on another node. Its exceptions are raised locally, with the remote traceback.

    ``RayEnvs`` creates it.
    """

    def __init__(self, envs: RayEnvs, options: Mapping[str, Any]) -> None:
        self._envs, self._options = envs, dict(options)
        self._seat: _Seat | None = None
        self._key = 0
        self._settle()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """See ``gymnasium.Env.reset``. If the environment's node has died, it moves to a live node.

        Raises:
            NodeLostError: Several nodes, one after the other, died or did not answer in time.
        """
        super().reset(seed=seed)

        def start() -> tuple[str, dict[str, Any]]:
            if self._seat is None:
                self._settle()
            first: tuple[str, dict[str, Any]] = self._ask("reset", seed=seed, options=options)
            return first

        return _retried(start)  # no turn was played yet, so no episode is lost

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """See ``gymnasium.Env.step``.

        Raises:
            NodeLostError: The node died or did not answer in time; the episode is lost.
            EpisodeOverError: The episode was lost earlier.
        """
        if self._seat is None:
            raise EpisodeOverError(
                "The node on which this episode ran was lost: call reset() to start an episode on another node."
            )
        turn: tuple[str, float, bool, bool, dict[str, Any]] = self._ask("step", action)
        return turn

    def render(self) -> Any:
        """See ``gymnasium.Env.render``."""
        return None if self._seat is None else self._ask("render")

    def close(self) -> None:
        """Close the environment, without waiting for it."""
        seat, self._seat = self._seat, None
        if seat is not None:
            self._envs._leave(seat)
            with contextlib.suppress(Exception):  # if its actor or Ray is gone, the environment is gone too
                ray_cluster.connected()
                seat.actor.drop.remote(self._key)

    def _settle(self) -> None:
        def make() -> Mapping[str, Any]:
            self._seat, self._key = self._envs._take(), next(self._envs._keys)
            attributes: Mapping[str, Any] = self._get(None, self._seat.actor.make, self._key, self._options)
            return attributes

        try:
            attributes = _retried(make)
        except BaseException:
            self.close()
            raise
        for name, value in attributes.items():
            setattr(self, name, value)

    def _ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        assert self._seat is not None  # every caller has checked this
        return self._get(self._envs._call_timeout_s, self._seat.actor.call, self._key, method, *arguments, **named)

    def _get(self, timeout_s: float | None, method: Any, *arguments: Any, **named: Any) -> Any:
        """Call a method of the actor, and wait for its result.

        Raises:
            NodeLostError: The actor was lost or did not answer in time; whether the call was executed is unknown.
        """
        seat = self._seat
        assert seat is not None  # every caller has checked this
        ray = ray_cluster.connected()
        try:
            return ray.get(method.remote(*arguments, **named), timeout=timeout_s)
        except ray.exceptions.RayTaskError as error:  # raise the environment's own exception, and name its node
            cause = error.cause
            cause.add_note(f"On the node {seat.node}:\n{error}")
            raise cause from None
        except ray.exceptions.ActorDiedError as error:
            self._envs._lose(seat)
            self.close()
            raise NodeLostError(f"The environments on the node {seat.node} were lost: {error}") from None
        except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError) as error:
            self.close()
            raise NodeLostError(f"The environment on the node {seat.node} does not respond: {error}") from None
