"""The HTTP interface of the viewer, as a Starlette application: JSON below ``api/``, and the files of the page.

Queries run in threads. Not covered: access control (``guard``), the queries (``rstar2_env.view.answers``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers
from rstar2_env.view.following import Follower
from rstar2_env.view.plain_json import to_json
from rstar2_env.view.server.guard import RequestGuard
from rstar2_env.view.server.options import ViewOptions
from rstar2_env.view.server.page import PageFiles

_LOOK_S = 0.2
_MOST_ANSWER = 256 << 20
_ZIPPED, _EFFORT = 4096, 4
"""Size in bytes of the smallest response that is compressed, and the gzip level: higher levels cost more time than they
save."""

Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(answers: Answers, follower: Follower, files: PageFiles, options: ViewOptions) -> ASGIApp:
    """Build the viewer's HTTP application (Starlette).

    Args:
        answers: Answers the queries.
        follower: Reports which runs have changed.
        files: Files of the page.
        options: Options of the server.
    """

    async def changes(request: Request) -> Response:
        since = request.query_params.get("since", "")
        until = time.monotonic() + (options.poll_s if since else 0.0)
        while True:
            cursor, changed, runs = follower.changes(since)
            waits = cursor == since and time.monotonic() < until and not follower.ended
            if waits and not await request.is_disconnected():
                await asyncio.sleep(_LOOK_S)
                continue
            return _json({"cursor": cursor, "changed": changed if since else [], "runs": runs and bool(since)})

    async def page(request: Request) -> Response:
        return files.respond(request)

    def endpoint(query: Callable[..., Any], *names: str, with_query: bool = False, postpones: bool = True) -> Endpoint:
        """Create an HTTP endpoint that runs a query.

        Args:
            query: Function that returns the response.
            *names: Path parameters to pass to it.
            with_query: Whether to pass the parameters of the query string too, as a dictionary.
            postpones: Whether a request delays the diagnosis of a large run.
        """

        def call(request: Request) -> Any:
            if postpones:
                answers.postpone_findings()
            arguments = [request.path_params[name] for name in names]
            try:
                return query(*arguments, dict(request.query_params)) if with_query else query(*arguments)
            finally:  # the page may send more requests after a response that took long
                if postpones:
                    answers.postpone_findings()

        async def respond(request: Request) -> Response:
            return await run_in_threadpool(_respond, call, request)

        return respond

    run = "/api/runs/{run:str}"
    routes = [
        Route("/api/runs", endpoint(answers.runs)),
        Route("/api/changes", changes),
        Route("/api/compare", endpoint(answers.compare, with_query=True)),
        Route("/api/difference", endpoint(answers.difference, with_query=True)),
        Route(run, endpoint(answers.run, "run")),
        Route(f"{run}/metrics", endpoint(answers.metrics, "run")),
        Route(f"{run}/findings", endpoint(answers.findings, "run", postpones=False)),
        Route(f"{run}/statuses", endpoint(answers.statuses, "run", with_query=True)),
        Route(f"{run}/episodes", endpoint(answers.episodes, "run", with_query=True)),
        Route(f"{run}/episodes/{{key:str}}", endpoint(answers.episode, "run", "key")),
        Route(f"{run}/episodes/{{key:str}}/tokens", endpoint(answers.tokens, "run", "key")),
        Route(f"{run}/aggregates", endpoint(answers.aggregates, "run", with_query=True)),
        Route(f"{run}/groups", endpoint(answers.groups, "run", with_query=True)),
        Route(
            f"{run}/groups/{{step:str}}/{{group:str}}", endpoint(answers.group, "run", "step", "group", with_query=True)
        ),
        Route(f"{run}/sampler", endpoint(answers.sampler, "run")),
        Route(f"{run}/problems", endpoint(answers.problems, "run", with_query=True)),
        Route(f"{run}/problems/{{problem:path}}", endpoint(answers.problem, "run", "problem", with_query=True)),
        Route("/{name:path}", page),
    ]
    zipped = GZipMiddleware(Starlette(routes=routes), minimum_size=_ZIPPED, compresslevel=_EFFORT)
    return RequestGuard(zipped, options)


def _respond(query: Callable[[Request], Any], request: Request) -> Response:
    try:
        return _json(query(request))
    except KeyError as error:
        return _json({"error": f"Not found: {str(error)[:200]}."}, 404)
    except ConfigurationError as error:
        return _json({"error": str(error)}, 400)
    except RecursionError:
        return _json({"error": "This part of the run is nested too deeply to be shown."}, 400)
    except (OSError, EOFError) as error:
        return _json({"error": f"The run changed while it was read ({error}): try again."}, 409)


def _json(value: Any, status: int = 200) -> Response:
    data = to_json(value).encode("utf-8", "replace")
    if len(data) > _MOST_ANSWER:
        return _json({"error": "The response is too large to be sent."}, 413)
    return Response(data, status, {"Cache-Control": "no-store"}, "application/json; charset=utf-8")
