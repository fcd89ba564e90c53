"""Level 2, containment: which parts of the machine the policy's programs can access from the environment's tool.

Each check calls the tool with a test program, as the policy would, so the results hold for the sandbox on this
machine. Not covered: escapes that need an exploit of the kernel; ``rstar2 sandbox check`` tries the known ones.
"""

from __future__ import annotations

import base64
import secrets
import socket
import tempfile
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.validation.bench import Bench, StepRecord, View, problem_of
from rstar2_env.evaluation.validation.check import CheckFinding, NotApplicableError, check
from rstar2_env.evaluation.validation.players import code_turn, takes_code
from rstar2_env.problems import Problem

_CONNECT = """
import socket
try:
    with socket.create_connection(("127.0.0.1", {port}), 2) as other:
        other.sendall(b"{mark}")
        print("{mark}")
except OSError as error:
    print("refused", type(error).__name__)
"""
_READ = """
try:
    print(open({path!r}).read())
except OSError as error:
    print("refused", type(error).__name__)
"""
_LOOP = "while True:\n    pass"
_FIND = """
import base64, glob, os, sys
blobs = {{"its own source": "", "the environment's variables": repr(dict(os.environ)), "its arguments": repr(sys.argv)}}
for name, value in list(globals().items()):
    if name != "blobs" and not name.startswith("__"):
        blobs["the variable " + name] = repr(value)[:100000]
for module in list(sys.modules.values()):
    for name, value in list(getattr(module, "__dict__", {{}}).items()):
        if isinstance(value, (str, bytes)) and len(value) < 100000 and getattr(module, "__name__", "") != "__main__":
            blobs["the module " + str(getattr(module, "__name__", ""))] = (
                blobs.get("the module " + str(getattr(module, "__name__", "")), "") + repr(value))
for pattern in ("*", "../*", "/tmp/*", os.path.expanduser("~/*"), "/proc/self/environ", "/proc/*/cmdline",
                "/proc/*/environ", "/dev/shm/*", "/mnt/*", "/srv/*"):
    for path in glob.glob(pattern)[:200]:
        try:
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    blobs["the file " + path] = file.read(200000).decode("utf-8", "replace")
        except OSError:
            pass
try:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        blobs["a frame around it"] = blobs.get("a frame around it", "") + repr(frame.f_locals)[:100000]
except Exception:
    pass
gold = base64.b64decode("{gold}").decode()[::-1]
where = [name for name, text in blobs.items() if gold in text]
print("found in " + "; ".join(where) if where else "not found")
"""


@check(
    2,
    demands="The policy's programs cannot connect to a server on the machine.",
    remedy="Run programs in a sandbox without a network (sandbox='local' with namespaces; see rstar2 sandbox check).",
)
def network_policy(bench: Bench) -> CheckFinding:
    """Check that the policy's programs cannot connect to a server on the machine (OpenEnv RFC 008)."""
    mark = secrets.token_hex(8)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        turn = _run(bench, _CONNECT.format(port=server.getsockname()[1], mark=mark))
        try:
            server.accept()[0].close()
            reached = True
        except BlockingIOError:
            reached = mark in turn.text
    said = (
        "the test program connected to a server on the machine"
        if reached
        else "the test program could not connect to a server on the machine"
    )
    return CheckFinding(not reached, said, {"status": turn.status})


@check(
    2,
    demands="The policy's programs cannot read a file of the user who runs the environment.",
    remedy="Run programs in a sandbox with a file system of its own (rstar2 sandbox check reports the protections).",
)
def host_containment(bench: Bench) -> CheckFinding:
    """Check that the policy's programs cannot read the files of the user who runs the environment (OpenEnv RFC 008)."""
    mark = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="rstar2-validate-") as folder:
        file = Path(folder) / "secret"
        file.write_text(mark, encoding="utf-8")
        turn = _run(bench, _READ.format(path=str(file)))
    read = mark in turn.text
    said = "the test program read a file of the user" if read else "not readable"
    return CheckFinding(not read, said, {"status": turn.status})


@check(
    2,
    demands="A program that never ends is stopped by the environment, and the next call works.",
    remedy="Give the tool limits (Limits.wall_s), which are enforced from outside of the program.",
)
def resource_bounds(bench: Bench) -> CheckFinding:
    """Check that the environment stops a program that never ends, and that the next call works (OpenEnv RFC 008)."""
    turn = _run(bench, _LOOP)
    stopped = turn.status == ToolStatus.TIMEOUT
    after = _run(bench, "print(6 * 7)")
    works = "42" in after.text
    said = (
        "an endless program was stopped, and the next call worked"
        if works
        else "an endless program was stopped, but the next call failed"
    )
    figures = {"status": turn.status, "next": after.status}
    return CheckFinding(
        stopped and works, said if stopped else f"an endless program got the status `{turn.status}`", figures
    )


@check(
    2,
    demands="The policy's programs cannot find the gold answer in any variable, file, argument or process that "
    "they can read.",
    remedy="Keep the gold answer in the environment's process: pass only the call to the tool, and nothing of "
    "the problem.",
)
def oracle_containment(bench: Bench) -> CheckFinding:
    """Check that the policy's programs do not find the gold answer in anything that they can read (OpenEnv RFC 008)."""
    view, gold = _searchable(bench)
    code = _FIND.format(gold=base64.b64encode(gold[::-1].encode()).decode())
    turn = _stepped(view, code)
    if "not found" not in turn.text and "found in" not in turn.text:
        return CheckFinding(
            False,
            f"the program that searches for the gold answer did not end: {turn.text[:200]}",
            {"status": turn.status},
        )
    said = turn.text[turn.text.find("found in") :].partition("\n")[0] if "found in" in turn.text else "not found"
    return CheckFinding("found in" not in turn.text, said, {"status": turn.status})


def marker_problem(bench: Bench, seed: int) -> Problem | None:
    """Make a problem whose gold answer is a number that no text has by chance; ``None`` if the environment rejects it.

    Args:
        bench: The environment under test.
        seed: Determines the number; also the seed of the trial ``reset``.
    """
    problem = Problem("marker", "What is it?", str(73_000_000_019 + 7_919 * seed))
    try:
        bench.env.reset(seed=seed, options={"problem": problem})
    except (Rstar2Error, KeyError, TypeError, ValueError, AttributeError):
        return None
    taken = problem_of(bench.env)  # an environment may ignore the given problem
    return problem if taken is not None and taken.answer == problem.answer else None


def _searchable(bench: Bench) -> tuple[View, str]:
    """Start an episode with a gold answer of at least six characters; return the view and the answer."""
    problem = marker_problem(bench, bench.seed)
    for seed in bench.seeds:
        view = bench.view(seed, None if problem is None else {"problem": problem})
        gold = view.problem.answer if view.problem is not None else ""
        if takes_code(view) and len(gold) >= 6:
            return view, gold
    raise NotApplicableError(
        "the environment does not have a tool that runs code, or its gold answers are too short to search for"
    )


def _run(bench: Bench, code: str) -> StepRecord:
    """Run a program in the tool, in the first episode whose tools include one that takes code."""
    for view in map(bench.view, bench.seeds):
        if takes_code(view):
            return _stepped(view, code)
    raise NotApplicableError("the environment does not have a tool that runs code")


def _stepped(view: View, code: str) -> StepRecord:
    try:
        action = code_turn(view, code)
    except ConfigurationError as error:
        raise NotApplicableError(str(error)) from error
    return StepRecord.play(view.env, action)
