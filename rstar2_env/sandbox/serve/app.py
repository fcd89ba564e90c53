"""The HTTP interface of the sandbox server, as a Starlette application.

    POST /v1/calls          a batch of calls; returns one JSON object per line, as each call finishes
    POST /v1/cancel         cancel calls whose outcomes are no longer needed
    POST /v1/sessions/end   end a session
    GET  /capabilities      provider, isolation, number of concurrent programs, largest limits
    GET  /metrics           metrics in the text format of Prometheus
    GET  /healthz           200 while the server accepts calls, 503 while it stops; requires no token
    and the requests of code-judge (``code_judge``)

Covered: how requests are parsed, validated and routed. Not covered: the queue, and how calls run (``service``).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.secret import secret_of
from rstar2_env.sandbox.fleet.codec import PROTOCOL, dump, job_from_json
from rstar2_env.sandbox.serve.body import RequestTooLargeError, read_json, too_large, too_many
from rstar2_env.sandbox.serve.code_judge import code_judge_routes
from rstar2_env.sandbox.serve.guard import ServiceGuard
from rstar2_env.sandbox.serve.metrics import CONTENT_TYPE
from rstar2_env.sandbox.serve.service import Service
from rstar2_env.sandbox.serve.stream import OutcomeStream


def build_app(service: Service) -> ASGIApp:
    """Build the HTTP application that passes calls to a service."""
    max_bytes = int(service.options.max_request_mb * (1 << 20))

    def reads(answer: Callable[[Service, Any], Response]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                body = await read_json(request, max_bytes, service)
                if not isinstance(body, dict):
                    raise ConfigurationError("A request must be a JSON object.")
                return answer(service, body)
            except RequestTooLargeError:
                return too_large(max_bytes)
            except (ConfigurationError, ValueError, RecursionError) as error:
                return JSONResponse({"error": str(error)}, 422)

        return endpoint

    async def capabilities(request: Request) -> Response:
        return JSONResponse(_capabilities(service, max_bytes))

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.page(), headers={"Content-Type": CONTENT_TYPE})

    async def healthz(request: Request) -> Response:
        state = "stopping" if service.draining else "ok"
        return JSONResponse({"status": state, "boot": service.boot}, 503 if service.draining else 200)

    routes = [
        Route("/v1/calls", reads(_calls), methods=["POST"]),
        Route("/v1/cancel", reads(_cancel), methods=["POST"]),
        Route("/v1/sessions/end", reads(_end_session), methods=["POST"]),
        Route("/capabilities", capabilities),
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        *code_judge_routes(service, max_bytes),
    ]
    return ServiceGuard(Starlette(routes=routes), secret_of(service.options.token), max_bytes, service)


def _calls(service: Service, body: dict[str, Any]) -> Response:
    """Answer a batch of calls: do not run a call with a known id again, and accept new calls while there is room."""
    boot, calls = body.get("boot"), body.get("calls")
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls) or not calls:
        raise ConfigurationError("A batch must have the field 'calls', a list of at least one object.")
    if len(calls) > service.options.max_calls:
        raise ConfigurationError(too_many(len(calls), service))
    if boot is not None and boot != service.boot:
        # The client has the boot id from before the server's restart: run nothing until the client has the new one.
        return JSONResponse(
            {
                "error": "This server was restarted, so no call of this request was run: send the calls again with the "
                "boot id of this answer.",
                "boot": service.boot,
            },
            409,
        )
    ids = [written.get("id") or secrets.token_hex(16) for written in calls]
    if not all(isinstance(call_id, str) and len(call_id) <= 200 for call_id in ids):
        raise ConfigurationError("The id of a call must be a string of at most 200 characters.")
    stream = OutcomeStream(service)
    refused: list[str] = []
    for call_id, written in zip(ids, calls, strict=True):
        call = service.known(call_id)
        if call is not None:
            stream.wait_for(call)
        elif service.room() > 0:
            try:
                stream.wait_for(service.take(call_id, job_from_json(written)))
            except ConfigurationError as error:
                stream.add(dump({"id": call_id, "error": str(error)}))
        else:
            refused.append(call_id)
    if not refused:
        return stream
    service.metrics.rejected.inc(len(refused))
    after = service.retry_after()
    if len(refused) == len(calls):
        refusal = {
            "error": "The queue of this server is full: try again later.",
            "refused": "full",
            "retry_after_s": after,
        }
        return JSONResponse(refusal, 429, headers={"Retry-After": str(math.ceil(after))})
    for call_id in refused:
        stream.add(dump({"id": call_id, "refused": "full", "retry_after_s": after}))
    return stream


def _cancel(service: Service, body: dict[str, Any]) -> Response:
    for call_id in _names(body, "ids", "calls"):
        service.cancel(call_id)
    return Response(status_code=204)


def _end_session(service: Service, body: dict[str, Any]) -> Response:
    for name in _names(body, "sessions", "sessions"):
        service.end_session(name)
    return Response(status_code=204)


def _names(body: dict[str, Any], field: str, what: str) -> list[str]:
    """Return the list of names in ``field`` of a request's body.

    Args:
        body: The request's body.
        field: Name of the field.
        what: The named things, such as "calls", for the error message.

    Raises:
        ConfigurationError: The field is not a list of strings.
    """
    names = body.get(field)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            f"The field {field!r} must be a list of strings that name the {what} to end; got {names!r:.100}."
        )
    return names


def _capabilities(service: Service, max_bytes: int) -> dict[str, Any]:
    from rstar2_env.core.version import __version__

    return {
        "protocol": PROTOCOL,
        "version": __version__,
        "boot": service.boot,
        "provider": service.provider,
        "slots": service.slots,
        "room": service.options.queue + service.in_flight_limit,
        "beat_s": service.options.beat_s,
        "remember_s": service.options.remember_s,
        "max_request_bytes": max_bytes,
        "max_limits": asdict(service.options.max_limits),
        "layers": [asdict(layer) for layer in service.sandbox.capabilities()],
    }
