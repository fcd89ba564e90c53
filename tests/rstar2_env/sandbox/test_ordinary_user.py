"""The same isolation for an ordinary user, by user namespaces: other tests run again as user 65534.

If the tests run as an ordinary user, the other modules cover this. As root, a separate mount namespace exposes the
interpreter to that user, even if it is in root's private home.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
USER = 65534

pytestmark = [
    pytest.mark.slow,
    pytest.mark.deadlines,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="already an ordinary user: the other modules show it"),
]

BECOME = """
import os, sys
sys.path.insert(0, {repository!r})
from rstar2_env.sandbox.inside.kernel import linux

def closed_to_others(path):
    parts = path.split("/")
    for end in range(2, len(parts) + 1):
        folder = "/".join(parts[:end])
        if os.path.isdir(folder) and not os.stat(folder).st_mode & 1:
            return folder
    return None

# Show what is needed below folders that others may not enter: keep it open, cover the folder, and bind it again.
linux.unshare(linux.CLONE_NEWNS)
linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
covered = {{}}
for path in {needed!r}:
    if (folder := closed_to_others(path)) is not None:
        covered.setdefault(folder, []).append((path, os.open(path, os.O_PATH)))
for folder, kept in covered.items():
    linux.mount("tmpfs", folder, "tmpfs", 0, "mode=755")
    for path, descriptor in kept:
        os.makedirs(path, exist_ok=True)
        linux.mount(f"/proc/self/fd/{{descriptor}}", path, None, linux.MS_BIND | linux.MS_REC)
os.chdir("/")
os.setgroups([])
os.setresgid({user}, {user}, {user})
os.setresuid({user}, {user}, {user})
os.environ.update(HOME="/tmp", PYTHONDONTWRITEBYTECODE="1")
os.execv(sys.executable, [sys.executable, *{arguments!r}])
"""


def as_ordinary_user(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python as user 65534."""
    repository = str(HERE.parents[2])
    shown = [os.path.realpath(sys.base_prefix), sys.prefix, repository]
    shown += [path for path in sys.path if os.path.isdir(path) and path not in shown]
    code = BECOME.format(repository=repository, needed=shown, user=USER, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=800, check=False)


def test_every_promise_is_kept_and_no_escape_succeeds() -> None:
    code = "from rstar2_env.cli import main; main(['sandbox', 'check', '--isolation', 'strict', '--json'])"
    done = as_ordinary_user("-c", code)
    assert done.returncode == 0, done.stderr
    layers = {layer["name"]: layer for layer in json.loads(done.stdout)["layers"]}
    assert {layer["tested"] for layer in layers.values() if layer["required"]} == {"held"}
    assert layers["user namespace"]["active"]
    assert not layers["own users"]["active"]


def test_programs_run_as_a_user_without_privileges() -> None:
    code = (
        "from rstar2_env.sandbox import Job, LocalSandbox\n"
        "with LocalSandbox(workers=1) as sandbox:\n"
        "    print(sandbox.run(Job('import os, sympy\\n(os.getuid(), sympy.sqrt(8))')).value)\n"
        '    print(sandbox.run(Job(\'open("/tmp/x", "w").write("x")\')).value)\n'
    )
    done = as_ordinary_user("-c", code)
    assert done.stdout == "(1000, 2*sqrt(2))\n1\n", done.stderr


def test_a_session_keeps_its_state_and_is_interrupted() -> None:
    code = (
        "from rstar2_env.sandbox import Job, Limits, LocalSandbox\n"
        "with LocalSandbox(workers=1, preload=()) as sandbox:\n"
        "    for cell in ('x = 41', 'import time; time.sleep(9)', 'x + 1'):\n"
        "        outcome = sandbox.run(Job(cell, session='a', limits=Limits(wall_s=0.5)))\n"
        "        print(outcome.session, outcome.value)\n"
    )
    done = as_ordinary_user("-c", code)
    assert done.stdout == "new None\ninterrupted None\nkept 42\n", done.stderr


@pytest.mark.proof
def test_the_corpus_is_survived_as_an_ordinary_user_where_layers_are_missing() -> None:
    providers = "local-without-mount or local-without-namespaces"
    options = ["-p", "no:cacheprovider", "-q", "-n", "0", "-k", f"test_survives and ({providers})"]
    module = str(HERE / "test_conformance.py")
    done = as_ordinary_user("-m", "pytest", module, *options, f"--rootdir={HERE.parents[2]}")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def modules(*names: str, proof: bool = False) -> Any:
    """Parameters of a test: modules that run again together, in each run or in a proof."""
    return pytest.param(names, id=", ".join(names), marks=[pytest.mark.proof] if proof else [])


@pytest.mark.parametrize(
    "modules",
    [
        modules("test_blame", proof=True),
        modules("test_conformance", proof=True),
        modules("inside/kernel/test_isolation"),
        modules("test_limits", "test_kernel_resources"),
        modules("test_session_life", "test_sessions", proof=True),
        modules("test_faults", proof=True),
        modules("test_soak", "test_stdio", "test_stdio_life", proof=True),
    ],
)
def test_the_others_pass_as_an_ordinary_user(modules: tuple[str, ...]) -> None:
    options = ["-p", "no:cacheprovider", "-q", "-n", "0", "-m", "not slow", f"--rootdir={HERE.parents[2]}"]
    done = as_ordinary_user("-m", "pytest", *(str(HERE / f"{module}.py") for module in modules), *options)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
