"""Find by tracing which system calls Python, NumPy and SymPy make, and compare them with the sandbox's filter.

    python tools/trace_calls.py                        # trace every suite again and compare (tens of minutes)
    python tools/trace_calls.py --suite numpy sympy    # some of them; the records of the others are kept
    python tools/trace_calls.py --compare              # compare only what is recorded

Run it with the interpreter and the packages that a sandbox will run, after an upgrade of any of them, and read the
output: calls that are made but that the filter neither allows nor refuses by name (add each to a
list of ``rstar2_env/sandbox/inside/kernel/syscalls.py``), and allowed calls that no suite made. The record,
``tools/traced_calls.json``, goes into the repository; a test compares the filter with it. Covered: names of calls, and
the commands of those whose arguments decide. Not covered: what a suite does not exercise. Needs strace.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from results import source

RECORD = Path(__file__).with_name("traced_calls.json")
DECIDING = {"ioctl": 1, "fcntl": 1, "prctl": 0, "arch_prctl": 0, "setsockopt": 2, "socketpair": 1, "clone": -1}
"""Calls whose argument at this position says what they do; the flags of ``clone`` are named, not placed."""

# Those of CPython that use the system; the language's own are covered by every program.
_CPYTHON = """
test_os test_posix test_subprocess test_threading test_thread test_threadsignals test_io test_fileio test_file
test_bufio test_largefile test_mmap test_tempfile test_shutil test_pathlib test_glob test_signal test_time test_random
test_select test_selectors test_epoll test_poll test_fcntl test_ioctl test_pty test_tty
test_resource test_sqlite3 test_zipfile test_tarfile test_gzip test_lzma test_bz2 test_ctypes test_faulthandler test_gc
test_decimal test_fractions test_math test_cmath test_statistics test_json test_sched test_queue test_wait3 test_wait4
test_fork1 test_popen test_cmd_line test_import test_importlib test_compileall test_dbm test_shelve test_pickle
test_asyncio.test_base_events test_asyncio.test_tasks test_asyncio.test_subprocess test_asyncio.test_unix_events
test_multiprocessing_main_handling test_contextlib test_exceptions test_sys test_sysconfig
test_platform test_getpass test_locale test_uuid test_secrets test_hashlib test_ssl test_socket test_logging
test_dataclasses test_functools test_itertools test_array test_memoryview test_codecs test_unicode test_regrtest
"""
THREADS = """
import concurrent.futures, multiprocessing, subprocess, sys, threading
import numpy as np
def work(n):
    a = np.random.default_rng(n).normal(size=(400, 400))
    return float(np.linalg.svd(a @ a.T, compute_uv=False)[0])
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with concurrent.futures.ThreadPoolExecutor(4) as pool: list(pool.map(work, range(8)))
with concurrent.futures.ProcessPoolExecutor(2) as pool: list(pool.map(work, range(4)))
with multiprocessing.Pool(2) as pool: pool.map(work, range(4))
subprocess.run([sys.executable, "-c", "print(1)"], check=True, capture_output=True)
"""
SUITES = {
    "cpython": ["-m", "test", "-q", "--timeout", "120", *_CPYTHON.split()],
    "numpy": [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "numpy._core",
        "numpy.linalg",
        "numpy.random",
    ],
    "sympy": ["-c", "import sympy; sympy.test('core', 'solvers', 'integrals', 'matrices', 'polys', 'printing')"],
    "threads": ["-c", THREADS],
}
_LINE = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\((.*)| resumed>)")
_COMMENT = re.compile(r" */\*.*?\*/")
_RESULT = re.compile(r"\) +=.*$")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


def trace(command: list[str], patience_s: float) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Run a command with strace; return the number of uses of each call, and the commands of the deciding calls."""
    calls: Counter[str] = Counter()
    commands: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "calls")
        os.mkfifo(pipe)
        strace = ["strace", "-f", "-qqq", "-X", "verbose", "-s", "0", "-e", "signal=none", "-o", pipe]
        process = subprocess.Popen(
            ["timeout", "--kill-after=10", str(patience_s), *strace, *command],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        with open(pipe, errors="replace") as lines:
            for line in lines:
                _count(line, calls, commands)
        code = process.wait()
    print(f"  ended with {code}, {sum(calls.values()):,} calls of {len(calls)} names", flush=True)
    return calls, commands


def _count(line: str, calls: Counter[str], commands: dict[str, Counter[str]]) -> None:
    found = _LINE.match(line)
    if found is None or found[2] is None:  # the end of a call that was counted when it began
        return
    name, arguments = found[1], _COMMENT.sub("", _RESULT.sub("", found[2]))
    calls[name] += 1
    if name not in DECIDING:
        return
    if name == "clone":
        flags = re.search(r"flags=([^,)]*)", arguments)
        parts = [flags[1] if flags else ""]
    else:
        parts = arguments.split(", ")[: DECIDING[name] + 1][-2 if name == "setsockopt" else -1 :]
    # An option of a socket means nothing without its level.
    commands[name][":".join(str(sum(int(number, 0) for number in _NUMBER.findall(part))) for part in parts)] += 1


def record(suites: Iterable[str], patience_s: float) -> dict[str, object]:
    """Trace suites and add their calls to the record, which keeps the other suites."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {"suites": {}}
    for name in suites:
        print(f"{name}: {' '.join(SUITES[name])[:100]}", flush=True)
        calls, commands = trace([sys.executable, *SUITES[name]], patience_s)
        known["suites"][name] = {
            "versions": {"python": platform.python_version(), **_versions("numpy", "sympy")},
            "machine": platform.machine(),
            **source(f"python tools/trace_calls.py --suite {name}"),
            "calls": dict(sorted(calls.items())),
            **{call: dict(sorted(counted.items())) for call, counted in sorted(commands.items())},
        }
        RECORD.write_text(json.dumps(known, indent=1) + "\n")
    return known


def _versions(*packages: str) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def compare(known: dict[str, object]) -> int:
    """Print the differences between filter and record; return the number of rejected calls that are not listed."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from rstar2_env.sandbox.inside.kernel import syscalls

    made = {name for suite in known["suites"].values() for name in suite["calls"]}
    allowed = syscalls.names(*syscalls.ALLOWED.values())
    refused = syscalls.names(syscalls.REFUSED, syscalls.LOCKS, syscalls.ENDED_FOR, syscalls.ABSENT)
    listed = refused | set(syscalls.SPECIAL)
    unknown = sorted(made - allowed - listed)
    print("made and answered with ENOSYS without being listed:", ", ".join(unknown) or "none")
    print("made and refused by a list:", ", ".join(sorted((made & listed) - allowed)) or "none")
    print("allowed and never made:", ", ".join(sorted(allowed - made)) or "none")
    for name in sorted(DECIDING):
        values = {value for suite in known["suites"].values() for value in suite.get(name, {})}
        print(f"{name}:", ", ".join(sorted(values)) or "never")
    return len(unknown)


def main() -> int:
    """Trace and compare; the exit code is 1 if there is an undecided difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", nargs="+", choices=sorted(SUITES), default=sorted(SUITES))
    parser.add_argument("--compare", action="store_true", help="trace nothing")
    parser.add_argument("--patience", type=float, default=3600.0, metavar="SECONDS", help="longest time for one suite")
    given = parser.parse_args()
    if given.compare and not RECORD.exists():
        parser.error(f"nothing is recorded in {RECORD}: run it without --compare first")
    known = json.loads(RECORD.read_text()) if given.compare else record(given.suite, given.patience)
    return int(compare(known) > 0)


if __name__ == "__main__":
    sys.exit(main())
