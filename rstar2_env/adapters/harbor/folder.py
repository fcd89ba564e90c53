"""Task folders of Harbor: ``task.toml``, ``instruction.md``, ``environment/``, ``solution/`` and ``tests/``.

Covered: tasks of one step whose Dockerfile starts from a plain image (Python, Debian, Ubuntu), copies files, installs
packages that this machine has (module ``packages``), and runs commands that the sandbox can run (module ``set_up``).
Every other task is refused with the reason. Not covered: how a task is run (module ``env``) or written (module
``export``).
"""

from __future__ import annotations

import io
import posixpath
import re
import shlex
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rstar2_env.adapters.harbor.packages import programs_of, python_packages
from rstar2_env.adapters.harbor.set_up import SetUpCommand, can_set_up, needs_network, network_command, roots_in
from rstar2_env.adapters.harbor.shell_line import read_line
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.config_file import read_mapping
from rstar2_env.core.files.given_path import check_given
from rstar2_env.sandbox.options import can_be_root_folder

RESERVED = ("tests", "solution", "logs")
"""Top-level folders of a task's image that Harbor itself fills."""
PLAIN_IMAGE = re.compile(
    r"((docker\.io/)?(library/)?(python|debian|ubuntu|buildpack-deps)"
    r"|ghcr\.io/laude-institute/t-bench/(ubuntu|python)-[\d-]+)(:[\w.-]+)?"
)
"""Pattern of names of images that provide only Python or a shell; the second line matches Terminal-Bench's images."""
_FROM = re.compile(r"(?:--platform=\S+\s+)?(\S+)(?:\s+as\s+\S+)?", re.IGNORECASE)
_MOST_BYTES = 16 << 20
_TIMEOUT_S = 600.0
_CANARY = re.compile(r"(<!--.*canary.*-->|#.*canary.*)", re.IGNORECASE)
_REFUSED: Mapping[str, str] = {
    "steps": "the task has several steps",
    "environment.gpus": "the task needs a GPU",
    "environment.gpu_types": "the task needs a GPU",
    "environment.tpu": "the task needs a TPU",
    "environment.mcp_servers": "the task needs MCP servers",
    "environment.skills_dir": "the task needs skills for an agent of Harbor",
    "environment.healthcheck": "the task needs services in its container",
    "environment.allowed_hosts": "the task needs the network",
    "agent.allowed_hosts": "the task needs the network",
    "verifier.allowed_hosts": "the task needs the network",
    "agent.user": "the task runs commands as other users",
    "verifier.user": "the task runs commands as other users",
    "verifier.environment": "the tests of the task need another image",
    "verifier.collect": "the tests of the task need commands in services",
}
"""Fields that a task must not set, each with the reason."""
_REFUSED_FILES = (
    "trajectory.json",
    ".harborignore",
    "environment/.dockerignore",
    "environment/docker-compose.yaml",
    "environment/docker-compose.yml",
)


@dataclass(frozen=True, slots=True)
class HarborTask:
    """A task that the sandbox can play.

    Attributes:
        name: Name in ``task.toml``, or else the name of the folder.
        instruction: The text for the policy.
        workdir: Working folder of all commands, an absolute path in the sandbox.
        folders: Folders to create, as absolute paths in the sandbox.
        files: Files of the image, each as its absolute path in the sandbox and its path on this machine.
        commands: Commands that set up the image, in their order.
        tests: Folder with ``test.sh``.
        solution: Folder with ``solve.sh``; ``None`` if the task has no reference solution.
        environment: Environment variables of all commands.
        test_environment: Further variables of the tests.
        solution_environment: Further variables of the reference solution.
        packages: Python packages that the Dockerfile installs, by their pip names.
        test_timeout_s: Time limit of the tests, in seconds.
        metadata: The table ``[metadata]``.
    """

    name: str
    instruction: str
    workdir: str
    folders: tuple[str, ...]
    files: tuple[tuple[str, Path], ...]
    commands: tuple[SetUpCommand, ...]
    tests: Path
    solution: Path | None
    environment: Mapping[str, str]
    test_environment: Mapping[str, str]
    solution_environment: Mapping[str, str]
    packages: tuple[str, ...]
    test_timeout_s: float
    metadata: Mapping[str, Any]

    @property
    def roots(self) -> set[str]:
        """Names of top-level folders of the sandbox that the task uses, in addition to ``RESERVED``."""
        inside = (self.workdir, *self.folders, *(place for place, _ in self.files))
        named = (root for one in self.commands for root in roots_in(one.command) if can_be_root_folder(root))
        return {*(path.split("/")[1] for path in inside), *named} - {"", *RESERVED}


def read_tasks(folder: str | Path, *, skip_refused: bool = False) -> list[HarborTask]:
    """Read a task, or every task in a folder of tasks, in the order of their names.

    Args:
        folder: Folder of a task (with ``task.toml``), or a folder that contains such folders.
        skip_refused: Leave out tasks that the sandbox cannot play.

    Raises:
        ConfigurationError: There is no task, two tasks have one name, or a task is refused.
    """
    top = Path(folder)
    check_given(top, "give the folder of a task of Harbor, or a folder of such folders", kind="folder", option="tasks")
    places = [top] if (top / "task.toml").exists() else sorted(file.parent for file in top.glob("*/task.toml"))
    if not places:
        raise ConfigurationError(
            f"The folder {folder} does not contain a task of Harbor: expected a file task.toml in it, or "
            "folders with a file task.toml."
        )
    tasks: dict[str, HarborTask] = {}
    refused: list[str] = []
    for place in places:
        try:
            task = read_task(place)
        except ConfigurationError as error:
            refused.append(str(error))
            continue
        if task.name in tasks:
            raise ConfigurationError(
                f"{place / 'task.toml'}: the name {task.name!r} (task.name) is already used by an earlier "
                "task: rename one of them."
            )
        tasks[task.name] = task
    if refused and not (skip_refused and tasks):
        more = f"\n… and {len(refused) - 5} more." if len(refused) > 5 else ""
        hint = " Pass skip_refused=true to play only the other tasks." if tasks else ""
        raise ConfigurationError(
            f"{len(refused)} of {len(places)} tasks cannot be played in the sandbox.{hint}\n"
            + "\n".join(refused[:5])
            + more
        )
    return list(tasks.values())


def read_task(folder: str | Path) -> HarborTask:
    """Read the folder of a task.

    Raises:
        ConfigurationError: A file is missing or too large, or the task needs something that the sandbox does not have;
            the message names the file and the field or line.
    """
    place = Path(folder)
    config_file = place / "task.toml"
    config = _Table(read_mapping(config_file), config_file)
    for name in ("instruction.md", "tests/test.sh"):
        if not config.get("steps") and not (place / name).is_file():
            raise _refusal(place / name, "this file is missing")
    for name, why in _REFUSED.items():
        if config.get(name):
            raise _refusal(config_file, f"{name}: {why}")
    for name, allowed in (("environment.os", ("linux",)), ("verifier.environment_mode", ("shared",))):
        if (said := config.text(name, allowed[0])).lower() not in allowed:
            raise _refusal(config_file, f"{name}: expected {allowed[0]}, got {said!r}")
    for name in _REFUSED_FILES:
        if (place / name).exists():
            raise _refusal(place / name, "this file is not supported in a task")
    image = config.text("environment.docker_image", "")
    if image and not PLAIN_IMAGE.fullmatch(image):
        raise _refusal(
            config_file,
            f"environment.docker_image: the task needs the Docker image {image}, which the sandbox does not have",
        )
    built = _Image(place / "environment")
    if (place / "environment" / "Dockerfile").is_file() and not image:
        built.read()
    elif not image:
        raise _refusal(
            place / "environment" / "Dockerfile", "this file is missing, and task.toml does not name a docker_image"
        )
    workdir = config.text("environment.workdir", built.workdir)
    if not workdir.startswith("/"):
        raise _refusal(config_file, f"environment.workdir: expected an absolute path, got {workdir!r}")
    tests, solution = place / "tests", place / "solution"
    for script in [*tests.glob("*.sh"), *solution.glob("solve.sh")]:
        try:
            needing = network_command(read_line(_text(script)))
        except ValueError as error:
            raise _refusal(script, str(error)) from None
        if needing is not None:
            raise _refusal(script, f"line {needing[0]}: {needs_network(needing[1])}")
    sources = [*(path for _, path in built.files), *_files(tests), *_files(solution)]
    if (size := sum(path.stat().st_size for path in sources)) > _MOST_BYTES:
        raise _refusal(place, f"the files of the task have {size} bytes; at most {_MOST_BYTES} are allowed")
    lines = _text(place / "instruction.md").split("\n")
    while lines and (not lines[0].strip() or _CANARY.fullmatch(lines[0].strip())):
        lines.pop(0)
    timeout = config.get("verifier.timeout_sec", _TIMEOUT_S)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise _refusal(config_file, f"verifier.timeout_sec: expected a positive number of seconds, got {timeout!r}")
    task = HarborTask(
        name=config.text("task.name", place.resolve().name),
        instruction="\n".join(lines),
        workdir=posixpath.normpath(workdir),
        folders=tuple(built.folders),
        files=tuple(built.files),
        commands=tuple(built.commands),
        tests=tests,
        solution=solution if (solution / "solve.sh").is_file() else None,
        environment={**built.variables, **config.variables("environment.env")},
        test_environment=config.variables("verifier.env"),
        solution_environment=config.variables("solution.env"),
        packages=tuple(dict.fromkeys(built.packages)),
        test_timeout_s=float(timeout),
        metadata=config.table("metadata"),
    )
    for root in sorted(task.roots):
        if not can_be_root_folder(root):
            raise _refusal(place, f"the task uses the folder /{root}, which the sandbox cannot provide")
    return task


def archive(files: Mapping[str, Path] | tuple[tuple[str, Path], ...], folders: tuple[str, ...] = ()) -> bytes:
    """Return a tar archive of folders and files, with paths relative to the sandbox's root and with file modes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for folder in folders:
            entry = tarfile.TarInfo(folder.lstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for inside, path in sorted(dict(files).items()):
            entry = tarfile.TarInfo(inside.lstrip("/"))
            entry.size, entry.mode = path.stat().st_size, path.stat().st_mode & 0o777
            with path.open("rb") as opened:
                tar.addfile(entry, opened)
    return packed.getvalue()


def files_below(folder: Path, inside: str) -> tuple[tuple[str, Path], ...]:
    """Return all files below a folder, each with its path in the sandbox, which begins with ``inside``."""
    return tuple((posixpath.join(inside, path.relative_to(folder).as_posix()), path) for path in _files(folder))


def _refusal(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(f"{path}, {why}." if why.startswith("line ") else f"{path}: {why}.")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _refusal(path, f"this file is not valid UTF-8: {error}") from None


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder.

    Raises:
        ConfigurationError: A file is a link.
    """
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_symlink():
            raise _refusal(path, "links are not supported")
        if path.is_file():
            yield path


class _Table:
    """The fields of ``task.toml``, accessed by dotted names."""

    def __init__(self, values: Mapping[str, Any], file: Path) -> None:
        self._values, self._file = values, file

    def get(self, name: str, default: Any = None) -> Any:
        value: Any = self._values
        for part in name.split("."):
            if not isinstance(value, Mapping):
                raise _refusal(self._file, f"{name.rpartition('.')[0]}: expected a table, got {value!r}")
            value = value.get(part)
            if value is None:
                return default
        return value

    def text(self, name: str, default: str) -> str:
        if not isinstance(value := self.get(name, default), str):
            raise _refusal(self._file, f"{name}: expected text, got {value!r}")
        return value

    def table(self, name: str) -> Mapping[str, Any]:
        if not isinstance(value := self.get(name, {}), Mapping):
            raise _refusal(self._file, f"{name}: expected a table, got {value!r}")
        return value

    def variables(self, name: str) -> dict[str, str]:
        found = dict(self.table(name))
        for key, value in found.items():
            if not isinstance(value, str):
                raise _refusal(self._file, f"{name}.{key}: expected text, got {value!r}")
            if "${" in value:
                raise _refusal(
                    self._file,
                    f"{name}.{key}: the value refers to an environment variable of the machine ({value}), "
                    "which is not supported",
                )
        return found


@dataclass(slots=True)
class _Image:
    """The changes that a Dockerfile makes to its base image."""

    context: Path
    workdir: str = "/"
    folders: list[str] = field(default_factory=list)
    files: list[tuple[str, Path]] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)
    commands: list[SetUpCommand] = field(default_factory=list)
    based: bool = False

    def read(self) -> None:
        """Read the Dockerfile.

        Raises:
            ConfigurationError: A line would need an image to be built.
        """
        file = self.context / "Dockerfile"
        for number, line in _instructions(_text(file)):
            word, _, rest = line.strip().partition(" ")
            try:
                done = self._take(word.upper(), rest.strip(), number)
            except ValueError as error:
                raise _refusal(file, f"line {number}: {error}") from None
            if not done:
                why = f"line {number}: {line.strip()!r} needs a Docker image of its own, which is not supported"
                raise _refusal(file, why)

    def _take(self, word: str, rest: str, line: int) -> bool:
        if word == "FROM":
            named, earlier, self.based = _FROM.fullmatch(rest), self.based, True
            return not earlier and named is not None and PLAIN_IMAGE.fullmatch(named[1]) is not None
        if word in ("LABEL", "CMD", "ENTRYPOINT", "SHELL", "MAINTAINER"):
            return word != "SHELL"
        if word == "RUN" and (packages := python_packages(rest, self._find)) is not None:
            self.packages += packages
            return True
        if word == "RUN" and rest.startswith("mkdir ") and not re.search(r"[;&|<>$`*]", rest):
            self.folders += [self._inside(one) for one in shlex.split(rest)[1:] if not one.startswith("-")]
            return True
        if word == "RUN":
            if done := can_set_up(rest, programs_of(self.packages)):
                so_far = len(self.folders), len(self.files)
                self.commands.append(SetUpCommand(line, rest, self.workdir, dict(self.variables), *so_far))
            return done
        words = shlex.split(rest)
        if word == "WORKDIR" and len(words) == 1:
            self.workdir = self._inside(words[0])
            self.folders.append(self.workdir)
            return True
        if word == "ENV" and words and all("=" in one for one in words) and "$" not in rest:
            self.variables |= dict(one.split("=", 1) for one in words)
            return True
        if word in ("COPY", "ADD") and len(words) >= 2 and not re.search(r"://|[*?\[$]|^--", rest):
            self._copy(words[:-1], words[-1])
            return True
        return False

    def _find(self, path: str) -> Path | None:
        return dict(self.files).get(self._inside(path))

    def _inside(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.workdir, path))

    def _copy(self, sources: list[str], target: str) -> None:
        into = self._inside(target)
        for source in sources:
            path = self.context / source.lstrip("/")
            if not path.exists() or not path.resolve().is_relative_to(self.context.resolve()):
                raise ValueError(f"the file or folder {source} does not exist in {self.context}")
            if path.is_dir():
                self.files += files_below(path, into)
            elif len(sources) > 1 or target.endswith(("/", ".")):
                self.files.append((posixpath.join(into, path.name), path))
            else:
                self.files.append((into, path))


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    """Yield the instructions of a Dockerfile, each with the number of its first line."""
    whole, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#") or not (line.strip() or whole):
            continue
        first = first if whole else number
        if line.rstrip().endswith("\\"):
            whole += line.rstrip()[:-1] + " "
            continue
        yield first, whole + line
        whole = ""
    if whole:
        yield first, whole
