"""Tests the bridges against the real packages, in virtual environments of their own: ``python bridges.py [NAME ...]``.

A group is an environment whose packages fit together; pip gets the extras of pyproject.toml that it names, where their
versions are pinned, with what rstar2-env itself needs, and so shows that both install side by side. An environment is
made again when its requirements change, and sees this checkout as the environment does that runs this file. Each bridge
(``tests/bridges/test_NAME.py``) is one pytest and one line; the exit code is 0 when all passed. A few that failed are
tested once more with nothing beside them, as ``passes.py`` does.

Without names, a bridge runs if its inputs changed since the commit on which it last passed in full (``last_full.py``);
``--all`` runs every bridge. ``--environments`` makes the environments and runs no tests.

Not covered: torch, which no bridge may bring in: its usual build is gigabytes, and a resolution with it fails here.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import last_full
from passes import Tally, read
from places import ROOT, SUPPORT

HOME = ROOT / ".venv-bridges"
TESTS = ROOT / "tests" / "bridges"
VARIABLE = "RSTAR2_BRIDGES"
"""Set while bridges are tested; without it pytest does not look into their folder."""

_RUNNER = ("pytest>=8", "pytest-timeout>=2.3")
_NEVER = ("torch==0", "vllm==0")
"""Constraints that no version meets."""
_NO_TESTS = 5
"""pytest's exit code where nothing was selected."""
_MOST_AGAIN = 2
"""As many bridges that failed are tested once more."""
_LONGEST_S = 1200.0
"""Seconds that the tests of one bridge may take."""
_PIP_S = 3600.0
"""Seconds that one call of pip may take: at low priority beside the tests it waits for a core for minutes."""


@dataclass(frozen=True)
class Group:
    """Bridges whose packages fit together.

    Attributes:
        name: Of the environment.
        bridges: The NAMEs of its files ``tests/bridges/test_NAME.py``.
        extras: Extras of pyproject.toml that it installs.
        also: Requirements of the tests alone.
        beside: Requirements that are installed without what they need in turn, over the packages of the environment
            that runs this: for a framework that wants torch.
        python: Version of Python that its packages need, such as "3.12"; empty for the one that runs this.
        files_only: Whether only the files of ``beside`` are read, so that they may state another version of Python.
    """

    name: str
    bridges: tuple[str, ...]
    extras: tuple[str, ...]
    also: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    python: str = ""
    files_only: bool = False


_VERL = (
    "orjson>=3.10,<4",
    "tensordict>=0.8,<=0.10",
    "pyvers>=0.2,<0.3",
    "codetiming>=1.4,<2",
    "hydra-core>=1.3,<1.4",
    "omegaconf>=2.3,<2.5",
    "antlr4-python3-runtime>=4.9,<4.10",
)
_FOREIGN_MCP = ("mcp-server-time>=2026.10,<2027", "tzlocal>=5.3.1,<6", "tzdata>=2024.2,<2028")
"""A foreign MCP server, and its requirements other than ``mcp``."""
_MCP = (
    "mcp>=2.3,<2.4",
    "mcp-types>=2.3,<2.4",
    "httpx2>=2.16.2,<2.16.3",
    "httpcore2>=2.16.2,<2.16.3",
    "truststore>=0.10,<1",
    "jsonschema>=4.20,<5",
    "opentelemetry-api>=1.28,<2",
    "sse-starlette>=3,<4",
    "pyjwt>=2.10,<3",
    "python-multipart>=0.0.9,<1",
)
_OTEL = ("opentelemetry-sdk>=1.30,<2", "opentelemetry-exporter-otlp-proto-http>=1.30,<2")
GROUPS = (
    Group(
        "frameworks",
        bridges=(
            *("inspect", "lm_eval", "textarena", "skyrl", "langgraph", "openai_agents", "smolagents"),
            "audit_frameworks",
        ),
        extras=("inspect", "lm-eval", "textarena", "skyrl", "langgraph", "openai-agents", "smolagents"),
        also=("openai>=2,<4",),
    ),
    # OpenEnv and verifiers want different versions of mcp.
    Group(
        "openenv",
        bridges=("openenv", "audit_openenv"),
        extras=("openenv",),
        also=_OTEL,
    ),
    Group(
        "verifiers",
        bridges=("verifiers", "nemo_gym", "audit_verifiers"),
        extras=("verifiers",),
        also=("pip>=24,<27", "setuptools>=77,<83"),
    ),
    # Its wheel has the example rollouts of all of its environments; nothing of it is imported.
    Group("nemo-gym", bridges=("nemo_gym_rollouts",), extras=(), beside=("nemo-gym>=0.7,<0.8",), files_only=True),
    Group("atif", bridges=("atif",), extras=(), also=("atif>=1.8,<1.9",)),
    Group("mcp", bridges=("mcp", "mcp_limits", "mcp_sessions", "mcp_server"), extras=("mcp",), also=_OTEL),
    Group("mcp-training", bridges=("mcp_training",), extras=(), beside=(*_FOREIGN_MCP, *_MCP)),
    # A server that receives OTLP: the build of OpenTelemetry's own collector on PyPI has no receiver of it.
    Group("phoenix", bridges=("phoenix",), extras=(), also=("arize-phoenix>=20.26,<20.27", *_OTEL)),
    Group("harbor", bridges=("harbor",), extras=(), also=("harbor>=0.25,<0.26",), python="3.12"),
    Group("checkers", bridges=("checkers",), extras=(), also=("falsepass>=0.11,<0.12", "bohrin>=0.4,<0.5")),
    Group("verl", bridges=("verl", "verl_formulas"), extras=(), beside=("verl>=0.9.1,<0.10", *_VERL)),
    Group("polgrad", bridges=("polgrad",), extras=(), beside=("polgrad>=0.2.1,<0.3",)),
    # vLLM, which the other tests need, permits only an older version.
    Group("transformers", bridges=("newest_transformers",), extras=(), beside=("transformers>=5.24,<6",)),
    # The last version with interactions.
    Group("verl-0.7", bridges=("verl_interactions",), extras=(), beside=("verl>=0.7.1,<0.8", *_VERL)),
)


@dataclass(frozen=True)
class Result:
    """What came of one bridge.

    Attributes:
        name: The bridge's.
        line: Its line of the summary.
        tally: Its tests.
        output: What pytest or pip said.
    """

    name: str
    line: str
    tally: Tally
    output: str
    seconds: float = 0.0

    @property
    def bad(self) -> int:
        """Tests that failed, or could not run."""
        return self.tally.counts["failed"] + self.tally.counts["error"]


def requirements(group: Group) -> list[str]:
    """What pip gets for a group: what rstar2-env needs, its extras, and a runner.

    Raises:
        KeyError: pyproject.toml has no such extra.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(one for extra in group.extras for one in extras[extra]), *group.also, *_RUNNER]


def interpreter(version: str) -> str | None:
    """Return the interpreter of a version, on the path or installed beside the one that runs this, or ``None``."""
    if not version:
        return sys.executable
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}*/bin/python{version}"))
    for found in filter(None, [shutil.which(f"python{version}"), *map(str, beside)]):
        code, said = _run([found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
        if code == 0 and said.strip() == version:
            return found
    return None


def environment(group: Group) -> Path:
    """Make a group's environment, or take the one that is there when its requirements are the same.

    Returns:
        Its interpreter.

    Raises:
        subprocess.CalledProcessError: pip failed; the error has what it said.
        LookupError: This machine lacks the version of Python that the group needs.
    """
    base = interpreter(group.python)
    if base is None:
        raise LookupError(f"needs Python {group.python}")
    folder = HOME / group.name
    python, stamp = folder / "bin" / "python", folder / "made-of.txt"
    wanted = "\n".join([sys.version, base, *requirements(group), *group.beside, ""])
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted or not python.exists():
        shutil.rmtree(folder, ignore_errors=True)
        _said([base, "-m", "venv", "--without-pip", str(folder)])
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
        if group.beside:
            more = ["--ignore-requires-python"] if group.files_only else []
            _said([*pip, "install", "--no-compile", "--no-deps", *more, *group.beside])
            (site,) = (folder / "lib").glob("python*/site-packages")
            (site / "beside.pth").write_text("".join(f"{path}\n" for path in sys.path if "site-packages" in path))
            stamp.write_text(wanted, encoding="utf-8")
            _show_checkout(python)
            return python
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as never:
            never.write("\n".join(_NEVER))
            never.flush()
            # Most modules of these packages are never imported, so compiling them all would be most of the work.
            _said([*pip, "install", "--no-compile", "--constraint", never.name, *requirements(group)])
        stamp.write_text(wanted, encoding="utf-8")
    _show_checkout(python)
    return python


def _show_checkout(python: Path) -> None:
    """Let an environment see the checkout: the files of the editable installation here are copied into it."""
    (site,) = (python.parents[1] / "lib").glob("python*/site-packages")
    for old in site.glob("*rstar2_env*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    distribution = importlib.metadata.distribution("rstar2-env")
    for file in distribution.files or ():
        if not file.parts[0].startswith("..") and file.suffix != ".pyc":
            target = site / file
            target.parent.mkdir(exist_ok=True)
            shutil.copy(str(distribution.locate_file(file)), target)


def _said(words: Sequence[str]) -> None:
    """Run to the end; what was said goes with the error."""
    code, said = _run(words, timeout_s=_PIP_S)
    if code:
        raise subprocess.CalledProcessError(code, words, said)


def _run(
    words: Sequence[str], env: Mapping[str, str] | None = None, *, timeout_s: float = _LONGEST_S
) -> tuple[int, str]:
    try:
        done = subprocess.run(
            words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        return -1, f"{(error.output or b'').decode(errors='replace')}\nIt took longer than {timeout_s:.0f} s."
    return done.returncode, done.stdout


def test_bridge(python: Path, name: str, words: Sequence[str]) -> Result:
    """Run the tests of one bridge with an interpreter; ``words`` are for pytest."""
    began = time.monotonic()
    path = os.pathsep.join([str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
    given = {**os.environ, VARIABLE: "1", "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory(prefix="rstar2-bridge-") as folder:
        report = Path(folder) / "report.xml"
        # -P: our folder ``agents`` is not the package of that name.
        command = [str(python), "-P", "-m", "pytest", f"tests/bridges/test_{name}.py", f"--confcutdir={TESTS}"]
        command += ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", *words]
        code, said = _run(command, given)
        tally = read(report) if report.exists() else Tally()
    if code not in (0, 1, _NO_TESTS) and not tally.counts["error"]:
        tally.counts["error"] += 1
    took = time.monotonic() - began
    return Result(name, f"{name:<16} {tally.line(took)}", tally, said, took)


def no_environment(group: Group, name: str, error: subprocess.CalledProcessError) -> Result:
    """The result of a bridge whose environment could not be made."""
    tally = Tally()
    tally.counts["error"] = 1
    return Result(name, f"{name:<16} its environment {group.name} could not be made", tally, str(error.output))


def no_python(name: str, error: LookupError) -> Result:
    """The result of a bridge for which this machine has no Python."""
    tally = Tally()
    tally.counts["skipped"] = 1
    tally.reasons[f"skipped: {error.args[0]}"] = 1
    return Result(name, f"{name:<16} skipped: {error.args[0]}", tally, "")


def test_all(wanted: Sequence[tuple[Group, Sequence[str]]], words: Sequence[str]) -> Iterator[Result]:
    """Make the environments and test their bridges, two at a time; ``words`` are for pytest."""
    with ThreadPoolExecutor(2) as pool:
        made = [(group, names, pool.submit(environment, group)) for group, names in wanted]
        tested: list[Result | Future[Result]] = []
        for group, names, job in made:
            try:
                python = job.result()
            except subprocess.CalledProcessError as error:
                tested += [no_environment(group, name, error) for name in names]
                continue
            except LookupError as error:
                tested += [no_python(name, error) for name in names]
                continue
            tested += [pool.submit(test_bridge, python, name, words) for name in names]
        for result in tested:
            yield result if isinstance(result, Result) else result.result()


def select(names: Sequence[str]) -> tuple[list[tuple[Group, list[str]]], list[str]]:
    """Return the groups with the bridges to test, and a line for each bridge that need not run.

    Args:
        names: Of bridges; without any, those whose inputs changed since they last passed in full.
    """
    skipped, wanted = [], []
    for group in GROUPS:
        chosen = [name for name in group.bridges if name in names] if names else []
        for name in () if names else group.bridges:
            if commit := last_full.unchanged_since(name, last_full.bridge_inputs(name)):
                skipped.append(
                    f"{name:<16} not run: its inputs are those of commit {commit[:12]}, where it passed in full"
                )
            else:
                chosen.append(name)
        if chosen:
            wanted.append((group, chosen))
    return wanted, skipped


def make_environments(names: Sequence[str]) -> int:
    """Make the environments of the bridges to test, two at a time; returns the exit code."""
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        jobs = [(group, pool.submit(environment, group)) for group, _ in select(names)[0]]
        for group, job in jobs:
            try:
                job.result()
            except subprocess.CalledProcessError as error:
                print(f"the environment {group.name} could not be made:\n{error.output}", flush=True)
                failed = 1
            except LookupError as error:
                print(f"the environment {group.name} is skipped: it {error.args[0]}", flush=True)
    return failed


def run(names: Sequence[str], words: Sequence[str]) -> int:
    """Test bridges, two environments at a time; returns the exit code."""
    began = time.monotonic()
    wanted, lines = select(names)
    whole, bad, passed = Tally(), [], []
    for result in test_all(wanted, words):
        print(result.output if result.bad else "", result.line, sep="\n", flush=True)
        whole.add(result.tally)
        lines.append(result.line)
        (bad if result.bad else passed).append(result)
    for first in bad if len(bad) <= _MOST_AGAIN else ():
        (group,) = (group for group in GROUPS if first.name in group.bridges)
        (again,) = test_all([(group, [first.name])], words)
        print(again.output if again.bad else "", again.line, sep="\n", flush=True)
        if not again.bad:
            whole.steadied(first.bad)
            passed.append(again)
            lines.append(f"UNSTEADY: {first.name} failed above, and passed when it was tested again alone")
    print("\n=== bridges", *lines, sep="\n")
    for reason, count in whole.reasons.most_common():
        print(f"{count} {reason}")
    if not words:
        last_full.record(result.name for result in passed if result.tally.counts["passed"])
    print(whole.line(time.monotonic() - began), flush=True)
    return int(bool(whole.counts["failed"] or whole.counts["error"]))


def main() -> int:
    """Read the command line and run."""
    known = sorted(name for group in GROUPS for name in group.bridges)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; without one, those that changed")
    parser.add_argument("--all", action="store_true", help="test every bridge, whether its inputs changed or not")
    parser.add_argument("--environments", action="store_true", help="make the environments and test nothing")
    given, words = parser.parse_known_args()
    if unknown := sorted(set(given.names) - set(known)):
        parser.error(f"there is no bridge {', '.join(unknown)}; there are {', '.join(known)}")
    names = known if given.all else given.names
    return make_environments(names) if given.environments else run(names, words)


if __name__ == "__main__":
    raise SystemExit(main())
