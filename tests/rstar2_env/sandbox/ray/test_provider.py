"""Sandboxes on the nodes of a real cluster: all nodes get calls, and each call has one outcome after any fault."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from places import DOCS
from waiting import wait_for

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.secret import bearer
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, Outcome, Sandbox
from rstar2_env.sandbox.ray.provider import RaySandbox

pytestmark = pytest.mark.slow

SLEEP = "import time\ntime.sleep(0.3)\n"
LONG = Job("import time\ntime.sleep(60)", limits=Limits(wall_s=60))


@pytest.fixture(scope="module")
def nodes(ray_cluster: Any) -> Any:
    """A cluster with two nodes of one CPU each for these tests, one of them with the resource "single" too."""
    ray_cluster.add(resources={"calls": 1})
    ray_cluster.add(resources={"calls": 1, "single": 1})
    return ray_cluster


@pytest.fixture
def sandbox(nodes: Any) -> Iterator[RaySandbox]:
    """A sandbox that starts fast, on every node. A busy machine may keep an actor from answering for a minute."""
    with RaySandbox(resource="calls", preload=(), watch_s=0.2, stall_timeout_s=60.0) as made:
        yield made


@pytest.fixture
def impatient(nodes: Any) -> Iterator[RaySandbox]:
    """The same, but an actor is lost if it does not answer for five seconds: for proofs, with nothing beside them."""
    with RaySandbox(resource="calls", preload=(), watch_s=0.2, stall_timeout_s=5.0) as made:
        yield made


def actor_pids(sandbox: RaySandbox) -> list[int]:
    """Processes of the actors."""
    import ray

    actors = [node.actor for node in sandbox.nodes()]
    # A lambda travels by value: the actors cannot import this module.
    return ray.get([actor.__ray_call__.remote(lambda keeper: os.getpid()) for actor in actors])


def stand_still(actors: list[int], seconds: float) -> None:
    """Stop every worker of these actors' nodes, also workers that start meanwhile, as if other work had the machine."""
    raylets = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in actors}
    stopped: set[int] = set()
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            for pid in {int(child) for raylet in raylets for child in children(raylet)} - stopped:
                with (
                    contextlib.suppress(FileNotFoundError, ProcessLookupError),
                    open(f"/proc/{pid}/cmdline", "rb") as file,
                ):
                    if b"default_worker" in (words := file.read()) or words.startswith(b"ray::"):
                        os.kill(pid, signal.SIGSTOP)
                        stopped.add(pid)
            time.sleep(0.02)
        assert stopped > set(actors), "another process was to start on a node"
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def children(pid: int) -> list[str]:
    """Processes that a process started."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        direct = file.read().split()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            direct += file.read().split()
    return sorted(set(direct))


def runs(sandbox: RaySandbox, url: str) -> int:
    """Number of calls that the server of a node has passed to its sandbox."""
    page = httpx.get(f"{url}/metrics", headers=bearer(sandbox._token), trust_env=False).text
    (line,) = [line for line in page.splitlines() if line.startswith("rstar2_sandbox_in_flight ")]
    return int(float(line.split()[1]))


def in_flight(sandbox: RaySandbox, fault: Callable[[], None], calls: int = 16, code: str = SLEEP) -> list[Outcome]:
    """Run calls, let the fault strike while they run, and return every outcome."""
    with ThreadPoolExecutor(1) as pool:
        outcomes = pool.submit(sandbox.run_many, [Job(f"{code}{number}") for number in range(calls)])
        wait_for(lambda: all(node.link.in_flight for node in sandbox.nodes()))
        time.sleep(0.3)
        fault()
        return outcomes.result(120)


def test_it_keeps_the_protocol_and_names_what_every_node_isolates(sandbox: RaySandbox) -> None:
    assert isinstance(sandbox, Sandbox)
    assert len(sandbox.node_capabilities()) == 2
    required = [layer for layer in sandbox.capabilities() if layer.required]
    assert len(required) >= 9
    assert all(layer.active for layer in required)


def test_many_jobs_run_on_all_nodes_and_come_back_in_their_order(sandbox: RaySandbox) -> None:
    seen = []
    outcomes = in_flight(sandbox, lambda: seen.extend(node.link.in_flight for node in sandbox.nodes()))
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(16)]
    assert {outcome.attempts for outcome in outcomes} == {1}
    assert max(seen) - min(seen) <= 2, "the calls in flight are shared evenly"


def test_threads_and_event_loops_share_it(sandbox: RaySandbox) -> None:
    async def go(start: int) -> list[str | None]:
        outcomes = await asyncio.gather(*(sandbox.arun(Job(str(start + number))) for number in range(5)))
        return [outcome.value for outcome in outcomes]

    with ThreadPoolExecutor(6) as pool:
        loops = pool.map(lambda start: asyncio.run(go(start)), (0, 100))
        threads = pool.map(lambda number: sandbox.run(Job(str(number))).value, range(20))
        assert list(loops) == [[str(start + number) for number in range(5)] for start in (0, 100)]
        assert list(threads) == [str(number) for number in range(20)]


def test_what_a_program_reads_and_writes_arrives_as_it_is(sandbox: RaySandbox) -> None:
    job = Job("print(len(input()), open('a/b', 'rb').read())", stdin="x" * (2 << 20), files={"a/b": b"\x00\xff"})
    assert sandbox.run(job).stdout == f"{2 << 20} b'\\x00\\xff'\n"
    assert sandbox.run(Job("print('\ud800')")).status is ToolStatus.SYNTAX_ERROR
    with pytest.raises(ConfigurationError, match="must be relative"):
        sandbox.run(Job("1", files={"/etc/passwd": b""}))


def test_cancelling_ends_the_program(nodes: Any) -> None:
    with RaySandbox(preload=(), resource="single") as sandbox:  # one program at a time

        async def go() -> None:
            call = asyncio.create_task(sandbox.arun(LONG))
            await asyncio.sleep(0.5)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        asyncio.run(go())
        assert sandbox.run(Job("1")).value == "1"


@pytest.mark.proof
def test_a_node_killed_mid_run_costs_no_call_and_one_that_joins_is_used(nodes: Any, sandbox: RaySandbox) -> None:
    victim = nodes.add(resources={"calls": 1})
    wait_for(lambda: len(sandbox.node_capabilities()) == 3, seconds=240)
    outcomes = in_flight(sandbox, lambda: nodes.kill(victim), calls=30)
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(30)]
    assert {outcome.status for outcome in outcomes} == {ToolStatus.OK}
    assert {outcome.attempts for outcome in outcomes} == {1, 2}, "what was lost there ran again, and nothing else"
    assert len(sandbox.node_capabilities()) == 2


def loses_its_first_actor(sandbox: RaySandbox, how: int) -> None:
    """Send a signal to an actor during calls, and check that it is replaced and that its calls run again."""
    before = actor_pids(sandbox)
    outcomes = in_flight(sandbox, lambda: os.kill(before[0], how))
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(16)]
    assert {outcome.attempts for outcome in outcomes} == {1, 2}
    wait_for(lambda: len(sandbox.node_capabilities()) == 2, seconds=240)
    assert before[0] not in actor_pids(sandbox)
    assert sandbox.run(Job("1")).value == "1"


def test_an_actor_that_dies_is_replaced_and_its_calls_run_again(sandbox: RaySandbox) -> None:
    loses_its_first_actor(sandbox, signal.SIGKILL)


@pytest.mark.proof
def test_an_actor_that_stalls_is_replaced_and_its_calls_run_again(impatient: RaySandbox) -> None:
    loses_its_first_actor(impatient, signal.SIGSTOP)


@pytest.mark.proof
def test_nodes_that_stand_still_for_a_while_lose_no_call_and_keep_their_actors(impatient: RaySandbox) -> None:
    before = actor_pids(impatient)
    outcomes = in_flight(impatient, lambda: stand_still(before, seconds=8.0))
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(16)]
    assert {outcome.attempts for outcome in outcomes} == {1}
    assert actor_pids(impatient) == before


def test_an_actor_whose_server_has_ended_is_replaced(sandbox: RaySandbox) -> None:
    import ray

    broken = sandbox.nodes()[0]
    ray.get(broken.actor.__ray_call__.remote(lambda keeper: setattr(keeper._server, "should_exit", True)))
    wait_for(lambda: ray.get(broken.actor.__ray_call__.remote(lambda keeper: keeper._serving.done())))
    outcomes = sandbox.run_many([Job(str(number)) for number in range(16)])
    assert [(outcome.value, outcome.attempts) for outcome in outcomes] == [(str(number), 1) for number in range(16)]
    wait_for(lambda: len(sandbox.nodes()) == 2 and broken not in sandbox.nodes(), seconds=240)


def test_a_sandbox_that_dies_inside_its_actor_costs_no_call(sandbox: RaySandbox) -> None:
    pids = actor_pids(sandbox)
    outcomes = in_flight(sandbox, lambda: [os.kill(int(pid), signal.SIGKILL) for pid in children(pids[0])] and None)
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(16)]
    assert {outcome.attempts for outcome in outcomes} == {1, 2}
    assert actor_pids(sandbox) == pids


def test_without_retries_a_lost_call_is_unavailable_and_names_the_node(nodes: Any) -> None:
    with RaySandbox(preload=(), resource="single", retries=0) as sandbox:
        (name,) = sandbox.node_capabilities()
        slow = SLEEP.replace("0.3", "4.5")
        outcomes = in_flight(sandbox, lambda: os.kill(actor_pids(sandbox)[0], signal.SIGKILL), calls=3, code=slow)
        assert all((o.status, o.attempts) == (ToolStatus.UNAVAILABLE, 1) for o in outcomes)
        assert name in str(outcomes[0].error_message)
        assert sandbox.run(Job("1")).value == "1"


def test_a_session_whose_node_is_lost_says_so_and_starts_clean(sandbox: RaySandbox) -> None:
    first = [sandbox.run(Job(f"x = {n}", session=f"s{n}")) for n in range(4)]
    assert [outcome.session for outcome in first] == ["new"] * 4
    again = [sandbox.run(Job("x", session=f"s{n}")) for n in range(4)]
    assert [(outcome.session, outcome.value) for outcome in again] == [("kept", str(n)) for n in range(4)]
    lost = sandbox.nodes()[0]
    homes = sandbox._dispatcher.homes._homes
    held = {name for name in ("s0", "s1", "s2", "s3") if homes[name].link is lost.link}
    assert 0 < len(held) < 4, "sessions are spread over the nodes"

    running = sorted(held)[0]
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(sandbox.run, Job("import time\ntime.sleep(60)", session=running, limits=LONG.limits))
        wait_for(lambda: runs(sandbox, lost.link.url))
        os.kill(actor_pids(sandbox)[0], signal.SIGKILL)
        ended = call.result(60)
    # Its state is gone, so running the cell again would run something else.
    assert (ended.status, ended.session, ended.attempts) == (ToolStatus.UNAVAILABLE, "ended", 1)
    for name in ("s0", "s1", "s2", "s3"):
        outcome = sandbox.run(Job("'x' in globals()", session=name))
        expected = "new" if name == running else "replaced" if name in held else "kept"
        assert (outcome.session, outcome.value) == (expected, str(name not in held))
        if expected == "replaced":
            assert lost.where.address in str(outcome.session_note)
        sandbox.end_session(name)
        assert sandbox.run(Job("1", session=name)).session == "new"
    sandbox.end_session("never heard of")


def test_a_node_that_cannot_isolate_is_named_and_nothing_starts(nodes: Any) -> None:
    with pytest.raises(SandboxUnavailableError, match=r"node [\d.]+ \(\w{8}\) did not start: .*network"):
        RaySandbox(resource="calls", preload=(), without=("net", "seccomp"))
    with pytest.raises(ConfigurationError, match=r"node [\d.]+ \(\w{8}\): .*does not exist"):
        RaySandbox(resource="calls", preload=(), readable=("/no/such/folder",))
    with pytest.raises(SandboxUnavailableError, match="resource 'gold'"):
        RaySandbox(resource="gold")
    with pytest.raises(ConfigurationError, match="connected to the Ray cluster"):
        RaySandbox(address="192.0.2.99:6379")


@pytest.mark.proof
def test_while_no_node_is_there_calls_wait_and_then_are_unavailable(nodes: Any) -> None:
    alone = nodes.add(resources={"alone": 1})
    with RaySandbox(preload=(), resource="alone", watch_s=0.2, reconnect_timeout_s=3.0) as sandbox:
        outcomes = in_flight(sandbox, lambda: nodes.kill(alone), calls=6)
        lost = [outcome for outcome in outcomes if outcome.status is ToolStatus.UNAVAILABLE]
        assert lost
        assert all("'alone'" in str(outcome.error_message) for outcome in lost)
        nodes.add(resources={"alone": 1})
        wait_for(lambda: bool(sandbox.node_capabilities()), seconds=240)
        assert sandbox.run(Job("1")).value == "1"


def test_closing_answers_the_calls_in_flight_and_leaves_no_process(nodes: Any) -> None:
    others = set(threading.enumerate())
    sandbox = RaySandbox(resource="calls", preload=())
    actors = actor_pids(sandbox)
    below = [pid for actor in actors for pid in children(actor)]
    assert len(below) >= 2
    with ThreadPoolExecutor(1) as pool:
        calls = pool.submit(sandbox.run_many, [LONG] * 12)
        threading.Timer(0.5, sandbox.close).start()
        assert [outcome.status for outcome in calls.result(60)] == [ToolStatus.UNAVAILABLE] * 12
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in [*actors, *below]))
    sandbox.close()
    with pytest.raises(SandboxUnavailableError, match="closed"):
        sandbox.run(Job("1"))
    wait_for(lambda: not [one for one in {*threading.enumerate()} - others if one.name == "rstar2-sandbox-ray"])


def test_pickled_it_is_its_options_and_a_task_of_the_cluster_can_use_it(sandbox: RaySandbox) -> None:
    import ray

    def use(data: bytes) -> tuple[str | None, bool]:
        with pickle.loads(data) as copy:
            return copy.run(Job("6 * 7")).value, ray.is_initialized()

    task = ray.remote(use).options(num_cpus=0).remote(pickle.dumps(sandbox))
    assert ray.get(task, timeout=400) == ("42", True)


@pytest.mark.proof
def test_a_connection_that_it_made_ends_with_it_and_nothing_is_printed() -> None:
    code = """
import ray
from rstar2_env.sandbox import Job, end_idle_sandboxes, make_sandbox, shared_sandbox
with make_sandbox("ray", address="local", preload=(), workers=1) as sandbox, shared_sandbox("ray", preload=()) as other:
    print(sandbox.run(Job("1")).value, other.run(Job("2")).value)
    other.close()
    end_idle_sandboxes()
    print(ray.is_initialized())
print(ray.is_initialized())
"""
    env = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=500, check=False, env=env
    )
    assert done.stdout.split() == ["1", "2", "True", "False"], done.stderr
    assert done.stderr == ""


@pytest.mark.proof
def test_when_ray_is_shut_down_under_it_calls_are_unavailable(nodes: Any) -> None:
    code = f"""
import ray
from rstar2_env.sandbox import Job, make_sandbox
ray.init(address={nodes.address!r}, log_to_driver=False, logging_level="ERROR")
limits = dict(reconnect_timeout_s=0.5, stall_timeout_s=5)
with make_sandbox("ray", resource="single", preload=(), watch_s=0.2, **limits) as sandbox:
    print(sandbox.run(Job("1")).status)
    ray.shutdown()
    print(sandbox.run(Job("1")).status)
    print(ray.is_initialized())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500, check=False)
    assert done.stdout.split() == ["ok", "unavailable", "False"], done.stderr


def test_the_documented_example_runs(nodes: Any) -> None:
    page = (DOCS / "sandbox-cluster.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if '"ray"' in block]
    names: dict[str, Any] = {}
    exec(code.replace("range(1000)", "range(20)"), names)
    assert [outcome.stdout for outcome in names["outcomes"]] == [f"{n * n}\n" for n in range(20)]
