"""Serves the HTTP API of code-judge, rStar2-Agent's tool service, so that its clients work unchanged.

The paths are ``/run`` and ``/judge``, each also with ``/batch`` and ``/long-batch`` appended, ``/ping`` and
``/status``. Covered: the fields of requests and results and the values of ``reason``, for Python. Not covered: other
languages (their ``reason`` is ``invalid_input``), and truncation of stdout, which is returned completely.
docs/code-judge.md lists the differences.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import encodable
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.serve.body import RequestTooLargeError, read_json, too_large, too_many
from rstar2_env.sandbox.serve.service import ServedCall, Service
from rstar2_env.sandbox.serve.stream import until_disconnect

_WAIT_S = 15.0
"""Maximum seconds that a call waits for a place in the queue."""
_LONG_WAIT_S = 3600.0
"""Maximum seconds that a call of a long batch waits for a place in the queue."""
_POLL_S = 0.02
_REASONS = {ToolStatus.TIMEOUT: "worker_timeout", ToolStatus.UNAVAILABLE: "internal_error"}


def code_judge_routes(service: Service, max_bytes: int) -> list[Route]:
    """Create the routes of code-judge's API; results of ``/run`` include the output, results of ``/judge`` do not."""

    async def ping(request: Request) -> Response:
        return JSONResponse("pong")

    async def status(request: Request) -> Response:
        return JSONResponse({"queue": service.waiting, "num_workers": service.slots})

    routes = [Route("/ping", ping), Route("/status", status)]
    for kind in ("run", "judge"):
        for form, wait_s in (("", _WAIT_S), ("/batch", _WAIT_S), ("/long-batch", _LONG_WAIT_S)):
            endpoint = _Endpoint(service, max_bytes, with_output=kind == "run", is_batch=bool(form), wait_s=wait_s)
            routes.append(Route(f"/{kind}{form}", endpoint.answer, methods=["POST"]))
    return routes


class _Endpoint:
    """Answers the requests of one route of code-judge's API: a single submission or a batch."""

    def __init__(self, service: Service, max_bytes: int, *, with_output: bool, is_batch: bool, wait_s: float) -> None:
        self._service = service
        self._max_bytes = max_bytes
        self._with_output = with_output
        self._is_batch = is_batch
        self._wait_s = wait_s

    async def answer(self, request: Request) -> Response:
        try:
            body = await read_json(request, self._max_bytes, self._service)
        except RequestTooLargeError:
            return too_large(self._max_bytes)
        except ConfigurationError as error:
            return _invalid(["body"], str(error))
        except (ValueError, RecursionError) as error:
            return _invalid(["body"], f"The body of the request is not valid JSON: {error}")
        submissions = body.get("submissions") if self._is_batch and isinstance(body, dict) else [body]
        if not isinstance(submissions, list) or not submissions:
            return _invalid(
                ["body", "submissions"], "A batch must have the field submissions, a list of at least one object."
            )
        if len(submissions) > self._service.options.max_calls:
            return _invalid(["body", "submissions"], too_many(len(submissions), self._service))
        for number, submission in enumerate(submissions):
            if (trouble := _invalid_field(submission)) is not None:
                return _invalid(["body", "submissions", number, trouble[0]], trouble[1])
        run = _Run(self._service, submissions, with_output=self._with_output)
        running = asyncio.create_task(run.run_all(self._wait_s))
        disconnected = asyncio.create_task(until_disconnect(request.receive))
        try:
            await asyncio.wait((running, disconnected), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                return Response(status_code=499)  # the client is gone
            running.result()
        finally:
            running.cancel()
            disconnected.cancel()
            run.leave()
        if not self._is_batch:
            return JSONResponse(run.results[0])
        return JSONResponse({"sub_id": _id_of(body), "results": run.results})


class _Run:
    """The submissions of one request, while they run."""

    def __init__(self, service: Service, submissions: list[dict[str, Any]], *, with_output: bool) -> None:
        self.results = [_result(submission, "queue_timeout", with_output=with_output) for submission in submissions]
        """The result of each submission; results of ``/judge`` do not contain the program's output."""
        self._service = service
        self._submissions = submissions
        self._with_output = with_output
        self._room = int(service.options.max_answer_mb * (1 << 20))
        self._places: dict[ServedCall, int] = {}
        self._changed = asyncio.Event()

    async def run_all(self, wait_s: float) -> None:
        """Run all submitted programs, except those that get no place in the queue within ``wait_s`` seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        limits = self._service.options.judge_limits
        for place, submission in enumerate(self._submissions):
            if submission["type"] != "python":
                self._add(place, "invalid_input")
                continue
            while self._service.room() <= 0 and not self._service.draining and loop.time() < deadline:
                await asyncio.sleep(_POLL_S)
            if self._service.room() <= 0:
                break
            job = Job(submission["solution"], stdin=submission.get("input") or "", limits=limits)
            call = self._service.take(secrets.token_hex(16), job)
            call.watchers.add(self.finished)
            self._places[call] = place
        while self._places:
            self._changed.clear()
            await self._changed.wait()

    def finished(self, call: ServedCall) -> None:
        """Store a call's outcome; the result of a refused call stays ``queue_timeout``, so that clients retry."""
        place = self._places.pop(call)
        if call.outcome is not None:
            self._add(place, call.outcome)
        self._changed.set()

    def _add(self, place: int, found: Outcome | str) -> None:
        """Store a result; if the response would exceed ``max_answer_mb``, store an internal error without output.

        Args:
            place: Position of the submission in the request, from 0.
            found: Outcome of the submission, or the reason why it has none.
        """
        result = _result(self._submissions[place], found, with_output=self._with_output)
        size = sum(len(result.get(name) or "") for name in ("stdout", "stderr"))
        if size > self._room:
            result = _result(self._submissions[place], "internal_error", with_output=self._with_output)
            size = 0
        self._room -= size
        self.results[place] = result

    def leave(self) -> None:
        """Stop waiting, and end all calls that are not finished, since a client of this API cannot reconnect."""
        for call in list(self._places):
            self._service.leave(call, self.finished, grace_s=0.0)


def _invalid_field(submission: Any) -> tuple[str, str] | None:
    """Return the first invalid field of a submission and the reason, or ``None``."""
    if not isinstance(submission, dict):
        return "", "A submission must be a JSON object."
    if submission.get("type") not in ("python", "cpp", "math"):
        return "type", "The field type must be 'python', 'cpp' or 'math', and this server runs only 'python'."
    if not isinstance(submission.get("solution"), str):
        return "solution", "The field solution must be a string."
    for name in ("sub_id", "input", "expected_output"):
        if not isinstance(submission.get(name), str | None):
            return name, f"The field {name} must be a string or null."
    return None


def _invalid(where: list[Any], text: str) -> Response:
    """Return the response to a request whose field at the path ``where`` is invalid, in code-judge's format."""
    return JSONResponse({"detail": [{"loc": where, "msg": text, "type": "value_error"}]}, 422)


def _id_of(named: dict[str, Any]) -> Any:
    """Return the id that the client gave a submission or batch (``sub_id``); if it gave none, a new random id."""
    given = named.get("sub_id")
    return encodable(given) if isinstance(given, str) and given else given or secrets.token_hex(16)


def _result(submission: dict[str, Any], found: Outcome | str, *, with_output: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"sub_id": _id_of(submission)}
    if isinstance(found, str):
        result |= {"success": False, "run_success": False, "cost": 0.0}
        output: dict[str, Any] = {"stdout": None, "stderr": None}
        reason = found
    else:
        ran = found.exit_code == 0 and not found.status.is_error and found.status.counts
        expected = submission.get("expected_output")
        success = ran and (expected is None or found.stdout.strip() == expected.strip())
        result |= {"success": success, "run_success": ran, "cost": found.wall_s}
        output = {"stdout": found.stdout, "stderr": found.stderr + _stderr_tail(found)}
        reason = _REASONS.get(found.status, "")
    return {**result, **(output if with_output else {}), "reason": reason}


def _stderr_tail(outcome: Outcome) -> str:
    """Return the traceback, as an interpreter would print it to stderr, or the error message if there is none."""
    if outcome.traceback:
        return outcome.traceback
    return f"{outcome.error_message}\n" if outcome.error_message else ""
