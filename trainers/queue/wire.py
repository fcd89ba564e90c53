"""``Wire``: messages between the first process of a run and every other process during a rollout.

Covered: one TCP connection from every process to the first, authenticated on both sides by a secret of the run
(``multiprocessing.connection``); messages that arrive before the receiver listens; processes that have failed. Not
covered: encryption, and messages between two processes other than the first.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, Self

from rstar2_env.core.errors import ConfigurationError

from ..ranks import Ranks

MessageHandler = Callable[[int, Any], None]
"""Function that is called with the sender's rank and the message."""


class Gone:
    """Message about a process that failed or ended; it applies to every round.

    Args:
        why: Reason why the process is gone, for error messages.
    """

    def __init__(self, why: str) -> None:
        self.why = why


class Wire:
    """The connections of one process to other processes of the run.

    Args:
        rank: Rank of this process, from 0.
        connections: Connections by the rank of the other process. The first process is connected to all others, which
            are connected only to it.
        size: Number of processes.

    Attributes:
        rank: Rank of this process, from 0.
        size: Number of processes.
    """

    def __init__(self, rank: int, connections: dict[int, Connection], size: int) -> None:
        self.rank, self.size = rank, size
        self._connections = connections
        self._lock = threading.Lock()
        self._round = 0
        self._deliver: Callable[[int, Any], object] | None = None
        self._early: list[tuple[int, int, Any]] = []
        self._gone: list[tuple[int, Gone]] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair, name="rstar2-wire", daemon=True)
            for pair in self._connections.items()
        ]
        for reader in self._readers:
            reader.start()

    @classmethod
    def connect(cls, ranks: Ranks) -> Self:
        """Connect the processes of a run; all of them call this together. There must be more than one.

        Raises:
            ConfigurationError: A process cannot reach the first one.
        """
        host = os.environ.get("MASTER_ADDR", "127.0.0.1")
        own = secrets.token_bytes(32)
        listener = None
        if ranks.rank == 0:
            # At a loopback address, other machines cannot reach the listener; elsewhere, a process needs the secret.
            listener = Listener((_listening_at(host), 0), backlog=ranks.size, authkey=own)
        here = None if listener is None else (host, int(listener.address[1]), own)
        address, port, secret = next(filter(None, ranks.gather(here)))
        found: dict[int, Connection] = {}
        error = ""
        if listener is None:
            try:
                found[0] = Client((address, port), authkey=secret)
                found[0].send(ranks.rank)
            except (OSError, EOFError) as problem:
                error = f"process {ranks.rank} cannot connect to {address}:{port}: {problem}"
        else:
            accepting = threading.Thread(target=_accept, args=(listener, ranks.size - 1, found), daemon=True)
            accepting.start()
        errors = list(filter(None, ranks.gather(error)))
        if listener is not None:
            if not errors:
                accepting.join()
            listener.close()
        if errors:
            raise ConfigurationError(
                "The training processes cannot connect to each other to share one queue of episodes: "
                f"{'; '.join(errors)}. Open the ports between the machines, or let each process play its "
                "own episodes",
                option="rollout.one_queue",
            )
        return cls(ranks.rank, found, ranks.size)

    def send(self, to: int, number: int, message: Any) -> None:
        """Send a message of a round to another process; does nothing if that process is gone.

        Args:
            to: Rank of the process.
            number: Number of the round.
            message: The message.
        """
        try:
            self._connections[to].send((number, message))
        except OSError:
            self._lost(to, Gone(f"process {to} has ended or can no longer be reached"))

    def fail(self, why: str) -> None:
        """Report to all connected processes that this one failed, whichever round they are in."""
        for other in self._connections:
            self.send(other, -1, Gone(why))

    def open(self, number: int, handler: MessageHandler) -> None:
        """Handle the messages of a round in the running event loop, including those that arrived earlier.

        Args:
            number: Number of the round.
            handler: Called with each message.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            self._round = number
            self._deliver = lambda sender, message: loop.call_soon_threadsafe(handler, sender, message)
            early, self._early = self._early, []
            for sender, gone in self._gone:
                self._deliver(sender, gone)
            for sender, of_round, message in early:
                self._take(sender, of_round, message)

    def shut(self) -> None:
        """Stop handling messages of the round; messages that arrive later are kept for the next ``open``."""
        with self._lock:
            self._deliver = None

    def close(self) -> None:
        """Close the connections."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            # Wake a waiting reader before its connection is closed: the file descriptor may be reused.
            with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as own:
                own.shutdown(socket.SHUT_RDWR)
        for reader in self._readers:
            reader.join()
        for connection in connections.values():
            connection.close()

    def _read(self, sender: int, connection: Connection) -> None:
        while True:
            try:
                number, message = connection.recv()
            except (EOFError, OSError):
                self._lost(sender, Gone(f"process {sender} has ended or can no longer be reached"))
                return
            if isinstance(message, Gone):
                self._lost(sender, message)
                continue
            with self._lock:
                self._take(sender, number, message)

    def _take(self, sender: int, number: int, message: Any) -> None:
        if self._deliver is not None and number == self._round:
            self._deliver(sender, message)
        elif number > self._round or (number == self._round and self._deliver is None):
            self._early.append((sender, number, message))

    def _lost(self, sender: int, gone: Gone) -> None:
        with self._lock:
            self._gone.append((sender, gone))
            if self._deliver is not None:
                self._deliver(sender, gone)


def _accept(listener: Listener, count: int, found: dict[int, Connection]) -> None:
    """Accept the connections of ``count`` other processes, and add them to ``found`` by the ranks of the processes."""
    while len(found) < count:
        try:
            connection = listener.accept()
            found[int(connection.recv())] = connection
        except (AuthenticationError, EOFError, ConnectionError, ValueError):
            continue  # not a process of this run
        except OSError:
            return  # closed


def _listening_at(host: str) -> str:
    """Return the address to listen at: the loopback address if ``host`` resolves to it, else all addresses."""
    try:
        own = socket.gethostbyname(host)
    except OSError:
        return "0.0.0.0"
    return own if own.startswith("127.") else "0.0.0.0"
