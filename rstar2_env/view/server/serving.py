"""``ViewServer``: runs the viewer's server in a thread, for the command line, tests and notebooks."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rstar2_env.core.closing import Closing
from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.secret import secret_of
from rstar2_env.view.answers import Answers
from rstar2_env.view.following import Follower
from rstar2_env.view.index.schema import cache_folder, remove_old
from rstar2_env.view.library import Library
from rstar2_env.view.queries.findings import code_state
from rstar2_env.view.server.options import ViewOptions

_STOP_S = 3
_PORT_ERRORS = frozenset({errno.EADDRINUSE, errno.EACCES})
"""``errno`` values that show that the port, not the host, is the cause of a failed start."""


class ViewServer(Closing):
    """Serves the viewer's page in a thread until it is closed; requests are accepted as soon as the object exists.

    Args:
        roots: Run folders, folders that contain runs, and single files of evaluations.
        options: Options of the server [default: loopback and a free port].
        cache: Folder of indexes [default: in the user's cache folder].
        static: Folder of the built page [default: the output of ``make view``].

    Attributes:
        address: Address of the server, without the token.
        answers: Answers the queries.

    Raises:
        MissingExtraError: The extra ``view`` is not installed.
        ConfigurationError: The page has not been built, a path is not a run, or the address is not available.
    """

    def __init__(
        self,
        roots: Iterable[str | os.PathLike[str]],
        options: ViewOptions | None = None,
        *,
        cache: Path | None = None,
        static: Path | None = None,
    ) -> None:
        options = options or ViewOptions(port=0)
        try:
            import starlette  # noqa: F401
            import uvicorn
        except ImportError as error:
            raise MissingExtraError("view", "The viewer's page") from error
        from rstar2_env.sandbox.serve.connections import bounded
        from rstar2_env.view.server.app import build_app
        from rstar2_env.view.server.page import PageFiles

        code_state()  # import the checks before the first request, which would wait for them
        library = Library(roots, cache)
        files = PageFiles(static) if static else PageFiles()
        self._follower = Follower(library)
        self.answers = Answers(self._follower)
        self._listener = _listen(options)
        self._options = replace(options, port=self._listener.getsockname()[1])
        config = uvicorn.Config(
            build_app(self.answers, self._follower, files, self._options),
            lifespan="off",
            http=bounded(options.connections, options.header_timeout_s),
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_S,
        )

        class Server(uvicorn.Server):
            """A server that leaves signal handling to the program around it."""

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        self._server: Any = Server(config)
        self._thread = threading.Thread(target=self._serve, name="rstar2-view", daemon=True)
        remove_old(cache or cache_folder())
        self._follower.start()
        self._thread.start()

    @property
    def address(self) -> str:
        """Address of the server, without the token."""
        host = self._options.host
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self._options.port}/"

    @property
    def link(self) -> str:
        """Link for the browser: the address, with the token if one is required."""
        token = secret_of(self._options.token)
        return self.address + (f"?token={token.reveal()}" if token is not None else "")

    def wait(self) -> None:
        """Block until the server is closed or Ctrl-C is pressed."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop the server and its thread."""
        self._follower.close()  # first, to end requests that wait for changes
        self.answers.close()
        self._server.should_exit = True
        self._thread.join(_STOP_S + 5)
        self._follower.library.close()
        self._listener.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._listener])


def _listen(options: ViewOptions) -> socket.socket:
    host = options.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.getaddrinfo(host, options.port, family, socket.SOCK_STREAM)
        return socket.create_server((host, options.port), family=family)
    except (OSError, UnicodeError) as error:  # UnicodeError: the name is too long
        reason = str(getattr(error, "strerror", None) or error)
        if isinstance(error, OSError) and error.errno in _PORT_ERRORS:
            raise ConfigurationError(
                f"The viewer cannot listen on {options.host}:{options.port}: {reason}. Choose another port.",
                option="port",
            ) from None
        raise ConfigurationError(
            f"The viewer cannot listen on {options.host}: {reason}. Use an address of this machine, such "
            "as 127.0.0.1, or 0.0.0.0 for all addresses.",
            option="host",
        ) from None
