"""The viewer's HTTP interface, as a Starlette application: answers as JSON below ``api/``, and the page's files.

Answers are worked out in threads. Not covered: who may ask (``guard``), what is answered (``rstar2_env.view.answers``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers
from rstar2_env.view.following import Follower
from rstar2_env.view.plain_json import dumped
from rstar2_env.view.server.guard import Guard
from rstar2_env.view.server.options import ViewOptions
from rstar2_env.view.server.page import PageFiles

_LOOK_S = 0.2
_MOST_ANSWER = 256 << 20

Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(answers: Answers, follower: Follower, files: PageFiles, options: ViewOptions) -> ASGIApp:
    """The application.

    Args:
        answers: What is answered.
        follower: Who tells what changed.
        files: The page.
        options: Of the server.
    """

    def says(answer: Callable[[Request], Any]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(_answered, answer, request)

        return endpoint

    async def changes(request: Request) -> Response:
        since = request.query_params.get("since", "")
        until = time.monotonic() + (options.poll_s if since else 0.0)
        while True:
            cursor, changed, runs = follower.changes(since)
            waits = cursor == since and time.monotonic() < until and not follower.ended
            if waits and not await request.is_disconnected():
                await asyncio.sleep(_LOOK_S)
                continue
            told = changed if since else []
            return _json({"cursor": cursor, "changed": told, "runs": runs and bool(since)})

    async def page(request: Request) -> Response:
        return files.answer(request)

    def of(answer: Callable[..., Any], *names: str, asks: bool = False) -> Endpoint:
        """The endpoint of an answer that takes these parts of the path and, if it asks, the rest of the address."""

        def call(request: Request) -> Any:
            taken = [request.path_params[name] for name in names]
            return answer(*taken, dict(request.query_params)) if asks else answer(*taken)

        return says(call)

    run = "/api/runs/{run:str}"
    routes = [
        Route("/api/runs", of(answers.runs)),
        Route("/api/changes", changes),
        Route("/api/compare", of(answers.compare, asks=True)),
        Route("/api/difference", of(answers.difference, asks=True)),
        Route(run, of(answers.run, "run")),
        Route(f"{run}/metrics", of(answers.metrics, "run")),
        Route(f"{run}/statuses", of(answers.statuses, "run", asks=True)),
        Route(f"{run}/episodes", of(answers.episodes, "run", asks=True)),
        Route(f"{run}/episodes/{{key:str}}", of(answers.episode, "run", "key")),
        Route(f"{run}/episodes/{{key:str}}/tokens", of(answers.tokens, "run", "key")),
        Route(f"{run}/groups", of(answers.groups, "run", asks=True)),
        Route(f"{run}/groups/{{step:str}}/{{group:str}}", of(answers.group, "run", "step", "group", asks=True)),
        Route(f"{run}/sampler", of(answers.sampler, "run")),
        Route(f"{run}/problems", of(answers.problems, "run", asks=True)),
        Route(f"{run}/problems/{{problem:path}}", of(answers.problem, "run", "problem", asks=True)),
        Route("/{name:path}", page),
    ]
    return Guard(Starlette(routes=routes), options)


def _answered(answer: Callable[[Request], Any], request: Request) -> Response:
    try:
        return _json(answer(request))
    except KeyError as error:
        return _json({"error": f"There is no {str(error)[:200]} here."}, 404)
    except ConfigurationError as error:
        return _json({"error": str(error)}, 400)
    except RecursionError:
        return _json({"error": "What the run's files hold here is nested too deeply to be shown."}, 400)
    except (OSError, EOFError) as error:
        return _json({"error": f"The run changed while it was read ({error}); ask again."}, 409)


def _json(value: Any, status: int = 200) -> Response:
    data = dumped(value).encode("utf-8", "replace")
    if len(data) > _MOST_ANSWER:
        return _json({"error": "The answer is too large to be sent."}, 413)
    return Response(data, status, {"Cache-Control": "no-store"}, "application/json; charset=utf-8")
