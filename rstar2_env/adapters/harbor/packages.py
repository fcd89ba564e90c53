"""Packages that the Dockerfile of a task installs, and whether this machine has them for programs in the sandbox.

A ``RUN`` line that only installs packages, links ``python`` to ``python3`` or removes the installers' files needs no
image if this machine has the packages: programs in the sandbox see ``/usr``, and the Python packages that the sandbox's
option ``packages`` names.

Covered: packages of ``apt-get`` and ``apt``, looked up in dpkg's database, and of ``pip``, looked up among the
installed distributions; versions are checked. Not covered: packages from other sources than the default index, and
extras of a package (their requirements are not checked).
"""

from __future__ import annotations

import fnmatch
import functools
import getopt
import re
import shlex
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution
from pathlib import Path

from rstar2_env.sandbox.options import site_dirs

FindFile = Callable[[str], "Path | None"]
"""Function that maps the path of a file in the image to that file on this machine; ``None`` if there is none."""

_DPKG = Path("/var/lib/dpkg/status")
_INSTALLERS = frozenset({"pip", "setuptools", "wheel", "uv"})
"""Packages that only install other packages, so a task may require them even if they are not installed."""
_CLEANED = ("/var/lib/apt/", "/var/cache/", "/root/.cache", "/tmp/", "/usr/share/doc", "/usr/share/man")
_APT_OPTIONS = (
    "fmo:qt:uVy",
    "allow-change-held-packages allow-downgrades allow-releaseinfo-change allow-unauthenticated assume-yes autoremove "
    "auto-remove default-release= fix-broken fix-missing force-yes ignore-missing install-recommends "
    "no-install-recommends no-install-suggests no-upgrade option= purge quiet reinstall show-upgraded target-release= "
    "verbose-versions yes",
)
_PIP_OPTIONS = (
    "f:i:IqUvr:",
    "break-system-packages cache-dir= compile default-index= default-timeout= disable-pip-version-check "
    "extra-index-url= find-links= force-reinstall ignore-installed index= index-strategy= index-url= no-binary= "
    "no-build-isolation no-cache no-cache-dir no-color no-compile no-deps no-input no-warn-conflicts "
    "no-warn-script-location only-binary= pre prefer-binary progress-bar= quiet requirement= requirements= retries= "
    "root-user-action= system timeout= trusted-host= upgrade upgrade-strategy= user verbose",
)
"""Options of an installer that do not change which packages get installed: first one-letter options, then long ones.

A ``:`` or ``=`` after an option means that it takes a value.
"""
_REQUIREMENTS = ("-r", "--requirement", "--requirements")
_HARMLESS = frozenset({"update", "upgrade", "dist-upgrade", "clean", "autoclean", "autoremove"})
_LINK_TO_PYTHON = re.compile(r"ln -s[fn]* /usr/bin/python3 /usr/(local/)?bin/python")
"""Pattern of a command that creates the program ``python``; it is skipped, since the sandbox has this program."""
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*((?:[=!<>~]=?[^;]*)?)(?:;.*)?")
_BOUND = re.compile(r"(==|!=|>=|<=|~=|<|>)\s*([\w.*+!-]+)")
_PLAIN = re.compile(r"\d+(\.\d+)*")


def python_packages(run: str, find: FindFile) -> list[str] | None:
    """Check a ``RUN`` line, and return the Python packages that it installs.

    Args:
        run: The line without ``RUN``.
        find: Function that finds a requirements file of the image on this machine (``FindFile``).

    Returns:
        Names of the packages; ``None`` if the line does more than install packages.

    Raises:
        ValueError: A package is not installed on this machine, or has another version; the message names it.
    """
    if re.search(r"[`$<>|()]|(?<!&)&(?!&)", re.sub(r"""'[^']*'|"[^"`$]*\"""", "", run)) or run.startswith("["):
        return None
    found: list[str] = []
    for words in _commands(run):
        names = _installed(words, find)
        if names is None:
            return None
        found += names
    return found


def programs_of(packages: list[str]) -> dict[str, str]:
    """Return the commands that the given installed packages define: for each name, its ``module:function``."""
    return {
        entry.name: entry.value.partition("[")[0].strip()
        for name in packages
        for distribution in [_distribution(name)]
        if distribution is not None
        for entry in distribution.entry_points
        if entry.group == "console_scripts"
    }


def _commands(run: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(run, posix=True, punctuation_chars="&;")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in ("&&", ";"):
            words.append(word)
        elif words:
            yield words
            words = []


def _installed(words: list[str], find: FindFile) -> list[str] | None:
    while words and _ASSIGNED.fullmatch(words[0]):
        words = words[1:]
    match words:
        case [] | ["set", *_]:
            return []
        case ["rm", *paths]:
            harmless = all(path.startswith(("-", *_CLEANED)) and ".." not in path for path in paths)
            return [] if harmless else None
        case ["ln", *_]:
            return [] if _LINK_TO_PYTHON.fullmatch(" ".join(words)) else None
        case ["apt-get" | "apt", *rest]:
            if (read := _read(rest, _APT_OPTIONS)) is None:
                return None
            command, *given = read[1] or [""]
            if command == "install":
                for name in given:
                    _check_debian(name)
            return [] if command in (*_HARMLESS, "install") else None
        case ["pip" | "pip3", "install", *rest] | ["uv", "pip", "install", *rest]:
            return _python(rest, find)
        case ["python" | "python3", "-m", "pip", "install", *rest]:
            return _python(rest, find)
    return None


def _read(words: list[str], options: tuple[str, str]) -> tuple[list[tuple[str, str]], list[str]] | None:
    """Parse the arguments of a command with ``getopt``.

    Args:
        words: The arguments.
        options: The short options, as for ``getopt``, and the long options, separated by spaces.

    Returns:
        The options with their values, and the other arguments; ``None`` if an option is not one of ``options``.
    """
    try:
        return getopt.gnu_getopt(words, options[0], options[1].split())
    except getopt.GetoptError:
        return None


def _python(words: list[str], find: FindFile) -> list[str] | None:
    if (read := _read(words, _PIP_OPTIONS)) is None:
        return None
    options, wanted = read
    for path in [value for option, value in options if option in _REQUIREMENTS]:
        if (file := find(path)) is None:
            raise ValueError(f"the requirements file {path} does not exist in the image")
        lines = (line.partition(" #")[0].strip() for line in file.read_text("utf-8").splitlines())
        wanted += [line for line in lines if line and not line.startswith("#")]
    names = []
    for requirement in wanted:
        if (match := _REQUIREMENT.fullmatch(requirement)) is None:
            return None
        if match[1].lower() not in _INSTALLERS:
            _check_python(match[1], match[2])
            names.append(match[1])
    return names


def _distribution(name: str) -> Distribution | None:
    return next(iter(Distribution.discover(name=name, path=site_dirs())), None)


def _check_python(name: str, bounds: str) -> None:
    distribution = _distribution(name)
    if distribution is None:
        raise ValueError(f"the Python package {name} is not installed on this machine")
    for operator, wanted in _BOUND.findall(bounds):
        if not _fits(distribution.version, operator, wanted):
            raise ValueError(f"the line needs {name}{operator}{wanted}, but this machine has {distribution.version}")


def _fits(version: str, operator: str, wanted: str) -> bool:
    """Whether a version meets a bound; ``<``, ``>`` and similar hold only if both versions consist of plain numbers."""
    if operator in ("==", "!="):
        return fnmatch.fnmatchcase(version, wanted) == (operator == "==")
    if _PLAIN.fullmatch(version) is None or _PLAIN.fullmatch(wanted) is None:
        return False
    longest = max(version.count("."), wanted.count(".")) + 1
    have, need = ([*map(int, one.split(".")), *[0] * longest][:longest] for one in (version, wanted))
    prefix = wanted.count(".")
    return {
        ">=": have >= need,
        "<=": have <= need,
        ">": have > need,
        "<": have < need,
        "~=": have >= need and have[:prefix] == need[:prefix],
    }[operator]


def _check_debian(written: str) -> None:
    name, _, wanted = written.partition("=")
    name = re.split(r"[:/]", name)[0]
    version = _debian_packages().get(name)
    if version is None:
        raise ValueError(f"the Debian package {name} is not installed on this machine")
    if wanted and not fnmatch.fnmatchcase(version, wanted):
        raise ValueError(f"the line needs {name}={wanted}, but this machine has {version}")


@functools.cache
def _debian_packages() -> dict[str, str]:
    """Return the version of each installed package of Debian; empty on other systems."""
    found: dict[str, str] = {}
    for stanza in _DPKG.read_text("utf-8", "replace").split("\n\n") if _DPKG.exists() else ():
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields.get("Version", "")
    return found
