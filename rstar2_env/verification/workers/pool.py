"""``WorkerPool``: the worker processes for verification; each process of the user's program has its own pool.

Workers start when there is work for them, at most one for each processor, and end with the user's program. Each worker
has its own thread, which starts it, sends it requests and replaces it; callers in any thread or event loop only wait
for a future. A request that takes longer than ``QUICK_S`` moves to a second queue; if the same request comes again, it
starts in that queue. The second queue has its own workers, half as many as the first. So a hostile text delays other
texts by at most ``QUICK_S``.

A forked child starts with an empty pool. Not covered: the computation in a worker (see ``grade``).
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.cores import usable_cores
from rstar2_env.verification.verdict import Reason
from rstar2_env.verification.workers.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError
from rstar2_env.verification.workers.wire import WireError

MEMORY_MB = 1024
"""Limit of a worker's address space, in MiB."""

FAT_MB = 320.0
"""Resident memory in MiB above which a worker is replaced, because SymPy's caches never shrink."""

MAX_JOBS = 20_000
"""Number of jobs after which a worker is replaced."""


QUICK_S = 0.25
"""Seconds of a worker's time after which an unanswered request moves to the queue of slow requests."""

MAX_KNOWN = 4096
"""Maximum number of slow requests that are remembered."""


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """The result of one verification request, or the reason for its failure."""

    reason: Reason
    method: str


@dataclass(frozen=True, slots=True)
class _Job:
    request: dict[str, Any]
    timeout_s: float
    future: Future[WorkerReply]


@dataclass(slots=True)
class _Lane:
    """A queue, and the threads that serve it, each with one worker.

    Attributes:
        name: Prefix of the names of the threads.
        size: Largest number of threads.
        jobs: The queue; ``None`` ends a thread.
        threads: The threads started so far.
        idle: Number of threads that wait for a job.
    """

    name: str
    size: int
    jobs: queue.SimpleQueue[_Job | None] = field(default_factory=queue.SimpleQueue)
    threads: list[threading.Thread] = field(default_factory=list)
    idle: int = 0


class WorkerPool:
    """Worker processes for two queues: one for new requests, one for requests that are known to be slow.

    Args:
        workers: Maximum number of processes for the first queue; ``None`` means one for each processor. The second
            queue has half as many, at least one.
        memory_mb: Limit of the address space of each process, in MiB.
    """

    def __init__(self, workers: int | None = None, *, memory_mb: int = MEMORY_MB) -> None:
        self.workers = max(1, workers if workers is not None else usable_cores())
        self._memory_mb = memory_mb
        self._pid = os.getpid()
        self._quick = _Lane("verify", self.workers)
        self._slow = _Lane("verify-slow", max(1, self.workers // 2))
        self._known: dict[int, None] = {}
        self._lock = threading.Lock()
        self._processes: set[WorkerProcess] = set()
        self._closed = False

    def submit(self, request: dict[str, Any], timeout_s: float) -> Future[WorkerReply]:
        """Queue one request; its deadline counts from the time when a worker begins to process it.

        The future never raises: a failure of the pool is a reply with ``Reason.UNAVAILABLE``.
        """
        job = _Job(request, timeout_s, Future())
        lane = self._slow if timeout_s > QUICK_S and _digest(request) in self._known else self._quick
        self._enter(lane, job)
        return job.future

    def _enter(self, lane: _Lane, job: _Job) -> None:
        """Queue a job in a lane; start another thread if none is idle and the lane has fewer than ``lane.size``."""
        with self._lock:
            if self._closed:
                job.future.set_result(WorkerReply(Reason.UNAVAILABLE, "closed"))
                return
            if lane.idle > 0:
                lane.idle -= 1  # that thread takes this job
            elif len(lane.threads) < lane.size:
                name = f"{lane.name}-{len(lane.threads)}"
                thread = threading.Thread(target=self._serve, args=(lane,), name=name, daemon=True)
                lane.threads.append(thread)
                thread.start()
            lane.jobs.put(job)

    def pids(self) -> list[int]:
        """Return the process IDs of the running workers."""
        with self._lock:
            return [process.pid for process in self._processes]

    def close(self) -> None:
        """End every worker. Waiting requests end with ``Reason.UNAVAILABLE``. A second call has no effect."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            lanes = (self._quick, self._slow)
            for process in self._processes:
                process.interrupt()
        for lane in lanes:
            for _ in lane.threads:
                lane.jobs.put(None)
        for lane in lanes:
            for thread in lane.threads:
                thread.join(timeout=10)
        with self._lock:
            processes = list(self._processes)
            self._processes.clear()
        for process in processes:
            process.kill()
        for lane in lanes:
            while not lane.jobs.empty():
                if (job := lane.jobs.get_nowait()) is not None:
                    job.future.set_result(WorkerReply(Reason.UNAVAILABLE, "closed"))

    def disown(self) -> None:
        """In a forked child, drop the parent's pool without ending the parent's workers."""
        for process in self._processes:
            process.disown()

    def _serve(self, lane: _Lane) -> None:
        """The main loop of one worker's thread."""
        process: WorkerProcess | None = None
        while True:
            job = lane.jobs.get()
            if job is None or self._closed:
                if job is not None:
                    job.future.set_result(WorkerReply(Reason.UNAVAILABLE, "closed"))
                break
            reply: WorkerReply | None = None
            if job.future.running() or job.future.set_running_or_notify_cancel():
                seconds = min(job.timeout_s, QUICK_S) if lane is self._quick else job.timeout_s
                try:
                    process, reply = self._do(process, job, seconds)
                except BaseException as error:  # a job must never be left without a reply
                    process, reply = self._drop(process), WorkerReply(Reason.UNAVAILABLE, type(error).__name__)
                if reply.reason is Reason.TIMEOUT and seconds < job.timeout_s:
                    self._remember(job)
                    self._enter(self._slow, job)
                    reply = None
            with self._lock:
                lane.idle += 1
            if reply is not None:
                job.future.set_result(reply)
            elif process is None and not self._closed:
                process = self._start()  # before the next request arrives
        self._drop(process)

    def _remember(self, job: _Job) -> None:
        """Record that a request is slow, so that it starts in the queue for slow requests the next time."""
        with self._lock:
            self._known[_digest(job.request)] = None
            if len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]

    def _do(self, process: WorkerProcess | None, job: _Job, seconds: float) -> tuple[WorkerProcess | None, WorkerReply]:
        """Send a job to ``process``, or to a new worker if ``process`` is ``None`` or dies.

        Returns:
            The worker for the next job, ``None`` if it has ended, and the reply.
        """
        died: WorkerDiedError | None = None
        for _ in range(2):
            if self._closed:
                return self._drop(process), WorkerReply(Reason.UNAVAILABLE, "closed")
            if process is None and (process := self._start()) is None:
                return None, WorkerReply(Reason.UNAVAILABLE, "no worker")
            try:
                reply = _read_reply(process.ask(job.request, seconds))
            except WorkerTimeoutError:
                return self._drop(process), WorkerReply(Reason.TIMEOUT, "deadline")
            except WireError:
                return self._drop(process), WorkerReply(Reason.UNAVAILABLE, "wire")
            except WorkerDiedError as error:
                process, died = self._drop(process), error
                continue
            if process.rss_mb > FAT_MB or process.jobs >= MAX_JOBS or reply.reason is Reason.TOO_LARGE:
                process = self._drop(process)
            return process, reply
        # Two workers died on the same text, so the answer is wrong: otherwise a policy could make an episode
        # unavailable by crashing the verifier. If the worker was killed from outside, the text is not the cause.
        assert died is not None
        return None, WorkerReply(Reason.UNAVAILABLE if died.by_outside_kill else Reason.TOO_LARGE, "worker died")

    def _start(self) -> WorkerProcess | None:
        try:
            process = WorkerProcess(memory_mb=self._memory_mb)
        except (OSError, WorkerDiedError, WorkerTimeoutError, WireError):
            return None
        with self._lock:
            self._processes.add(process)
        return process

    def _drop(self, process: WorkerProcess | None) -> WorkerProcess | None:
        """End a worker, if there is one; return ``None``, so that the caller can clear its variable in one line."""
        if process is not None:
            with self._lock:
                self._processes.discard(process)
            process.kill()
        return None


def _digest(request: dict[str, Any]) -> int:
    return hash((request.get("gold"), request.get("answer"), request.get("question")))


def _read_reply(message: dict[str, Any]) -> WorkerReply:
    """Check the reply of a worker.

    Raises:
        WireError: The message is not a valid reply.
    """
    try:
        return WorkerReply(Reason(message["reason"]), str(message.get("method", "")))
    except (KeyError, ValueError) as error:
        raise WireError(
            f"A reply of a worker process of the verifier must have a reason and a method, got {message!r}."
        ) from error


_pool: WorkerPool | None = None
_pool_lock = threading.Lock()
_workers: int | None = None


def shared_pool() -> WorkerPool:
    """Return this process's worker pool, which all its verifications share; it is created on first use."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = WorkerPool(_workers)
        return _pool


def set_workers(workers: int | None) -> None:
    """Set the maximum number of shared workers, and end the running ones; ``None`` means one for each processor."""
    global _workers
    _workers = workers
    close_shared_pool()


def close_shared_pool() -> None:
    """End the shared pool's workers; the next verification starts new ones."""
    global _pool
    with _pool_lock:
        pool, _pool = _pool, None
    if pool is not None:
        pool.close()


def _after_fork_in_child() -> None:
    global _pool, _pool_lock
    pool, _pool = _pool, None
    _pool_lock = threading.Lock()
    if pool is not None:
        pool.disown()


atexit.register(close_shared_pool)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
