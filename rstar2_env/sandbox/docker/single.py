"""``SingleUse``: containers that serve one call each, for engines that cannot isolate calls inside a container.

Covered: the pool of started containers. Each call gets its own container, which is replaced afterwards, so that a
program's changes to the container do not persist. Not covered: sessions, which would need a container for their whole
lifetime.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future

from rstar2_env.core.errors import ConfigurationError, Rstar2Error, SandboxUnavailableError
from rstar2_env.sandbox.base import CLOSED, PendingJob, settle
from rstar2_env.sandbox.client import WardenClient
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.messages import lost


class _Waiting:
    """A job that waits for a container and then for its outcome."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.future: Future[Outcome] = Future()
        self._lock = threading.Lock()
        self._inner: PendingJob | None = None
        self._dropped = False

    def start(self, client: WardenClient) -> PendingJob | None:
        """Submit the job to an unused container; return ``None`` if the call has already been cancelled."""
        with self._lock:
            if not self._dropped:
                self._inner = client.submit(self.job)
            return self._inner

    def drop(self) -> None:
        """Stop waiting for the outcome and end the program."""
        with self._lock:
            self._dropped = True
            if self._inner is not None:
                self._inner.drop()
                self._inner.future.cancel()


class SingleUse:
    """A pool of running containers, each of which serves one call.

    Args:
        make: Starts a container, and returns the client of its warden.
        count: Number of containers to keep ready.
    """

    def __init__(self, make: Callable[[], WardenClient], count: int) -> None:
        self._make = make
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closed = False
        self._in_use: set[WardenClient] = set()
        self._threads = [
            threading.Thread(target=self._keep, name="rstar2-sandbox-container", daemon=True) for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> PendingJob:
        """Queue a job for the next container that is ready.

        Raises:
            ConfigurationError: The job belongs to a session.
        """
        if job.session is not None:
            raise ConfigurationError(
                "With this Docker daemon, each program gets its own container, which is replaced "
                "afterwards, so sessions are not supported. Use a daemon and a runtime that allow layers "
                "of isolation around each program (`rstar2 sandbox check --provider docker` lists the "
                "missing layers), or the local sandbox."
            )
        waiting = _Waiting(job)
        self._queue.put(waiting)
        if self._closed:  # the job may have arrived after ``close`` emptied the queue
            self._answer_the_rest()
        return waiting

    def close(self) -> None:
        """Remove every container. Calls that wait or run end as ``unavailable``."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for client in list(self._in_use):
            client.close()
        for thread in self._threads:
            thread.join()
        self._answer_the_rest()

    def _answer_the_rest(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                if (waiting := self._queue.get_nowait()) is not None:
                    settle(waiting.future, lost(CLOSED, 0))
                elif any(thread.is_alive() for thread in self._threads):
                    self._queue.put(None)  # each sentinel ends one thread
                    return

    def _keep(self) -> None:
        """Loop of one thread: keep one container ready, and serve calls one by one, each in a fresh container."""
        client: WardenClient | None = None
        why = CLOSED
        while not self._closed:
            try:
                client = client or self._make()
                self._in_use.add(client)
            except Rstar2Error as error:
                why = str(error)
            waiting = self._queue.get()
            if waiting is None:
                break
            if client is None or self._closed:
                settle(waiting.future, lost(why if client is None else CLOSED, 0))
                continue
            if self._serve(waiting, client):
                self._in_use.discard(client)
                client.close()
                client = None
        if client is not None:
            client.close()

    @staticmethod
    def _serve(waiting: _Waiting, client: WardenClient) -> bool:
        """Run one job, and return whether the container must be replaced.

        The result is ``False`` if no program was started, because the job was cancelled earlier or is invalid.
        """
        try:
            inner = waiting.start(client)
        except SandboxUnavailableError as error:  # the container was closed meanwhile
            settle(waiting.future, lost(str(error), 0))
            return True
        except ConfigurationError as error:  # an invalid job, found when it was packed
            settle(waiting.future, error)
            return False
        if inner is None:
            return False
        with contextlib.suppress(CancelledError):
            settle(waiting.future, inner.future.result())
        return True
