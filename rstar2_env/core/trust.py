"""Decides which texts may name code to run, a sandbox, an environment variable or an address.

The rule: only texts of the user may do so. These are the command line, the arguments of a Python call, and a file of
options that the user passes to one of the commands in ``READS_OWN_FILES``. The contents of all other files are data. If
data names code, it is refused when the code would be imported (``check_code``). Data is refused when it is read
(``found``) if it chooses a sandbox, a resource limit above the one in ``HIGHEST_LIMITS``, an environment variable, an
address, a file to write, a model's own code, or an option that is passed on to vLLM or TRL and is not known to be
harmless. ``--trust`` turns both checks off. Neither check applies to the options of a run if this user began a run with
the same options at the same path, from the current working folder (``record``). From Python, a program may trust data
with ``with bounds(trust=True)``. Not covered: pickles (``trainers.backends.trl.sharding.plain_metadata``), and links in
exported folders (``trainers.export.write``).

The bounds apply to the whole process, not to one thread, because environments are created in threads.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from rstar2_env.core.errors import ConfigurationError

READS_OWN_FILES = frozenset({"train", "run", "eval", "sft", "launch"})
"""Commands that trust a file of options, named on their command line, as much as the command line itself."""

_FILE = re.compile(r"""[^\s,;=+()\[\]{}"'`]+\.py(?![\w])""")
HIGHEST_LIMITS: Mapping[str, Any] = MappingProxyType(
    {
        "wall_s": 60.0,
        "cpu_s": 120.0,
        "memory_mb": 4096,
        "processes": 256,
        "output_bytes": 16 << 20,
        "file_mb": 1024,
    }
)
"""Highest values of resource limits (``sandbox.Limits``) that data from a file may set. By default, clients of a
sandbox server may not set higher values either."""
_PAIR = re.compile(r"""(?<![\w."'])([A-Za-z_][\w.]*)\s*=|"([A-Za-z_][\w.]*)"\s*:""")
_ADDRESS = re.compile(r"(?:\w+_)?(?:url|urls|address|addresses|endpoint|endpoints|host|hosts)")
_SERVER = re.compile(r"""(?<![\w.-])mcp:\S""")
_RIGHTS = frozenset({"isolation", "network", "write", "pass_env", "token_env"})
"""Options of an MCP server that give it more rights, or a secret."""
_VARIABLE = re.compile(r"\w+_env")
_EMPTY: tuple[Any, ...] = (None, "", False, [], {}, ())
_FEW = (None, *range(257))
"""Values that data from a file may set for a number of processes or of sessions."""
_SAFE_SANDBOX: Mapping[str, tuple[Any, ...] | None] = {
    "provider": ("local",),
    "isolation": ("strict",),
    "limits": None,
    "workers": _FEW,
    "max_sessions": _FEW,
}
"""Options of a sandbox that data from a file may set, each with its allowed values; ``None`` allows every value."""
_SETTING = re.compile(r"""(?<!\w)(\w+)["']?\s*[=:]\s*["']?(?=([^\s,;+"')\]}]*))""")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_WRITES = re.compile(r"(?<![\w.-])record_episodes(?![\w.-])")
"""Matches the name of the wrapper that writes a file; one of its options is the file's path."""
_ENGINE_OPTIONS = frozenset(
    {
        *("max_rows", "seed", "max_prefill_tokens", "max_tokens_in_cache", "cache_share", "idle_s", "threads"),
        *("max_model_len", "kv_cache_gib", "gpu_memory_utilization", "sleep", "dtype", "block_size", "quantization"),
        *("enforce_eager", "enable_prefix_caching", "enable_chunked_prefill", "max_num_batched_tokens"),
        *("model", "transport", "bucket_mib", "timeout_s", "retries", "start_timeout_s", "reconnect_timeout_s"),
        *("scheduler", "shared_by"),
    }
)
_SAFE_OPTIONS: Mapping[str, frozenset[str]] = {
    "engine": _ENGINE_OPTIONS,
    "engine_options": _ENGINE_OPTIONS,
    "trl_options": frozenset(
        {
            *("adam_beta1", "adam_beta2", "adam_epsilon", "optim", "lr_scheduler_kwargs", "warmup_ratio", "tf32"),
            *("gradient_checkpointing_kwargs", "torch_empty_cache_steps", "disable_dropout"),
        }
    ),
}
"""Options of engines and of TRL that data from a file may set, keyed by the option that contains them. All others are
refused: an option may name code that vLLM or TRL imports (``worker_cls``), or make them write and upload files
(``push_to_hub``)."""


class _Name(str):
    """The name of an option, as opposed to its value."""


class UntrustedError(ConfigurationError):
    """Data from a file names code, a sandbox, an environment variable or an address, which only the user may name."""

    section = "trust"


class NamedPart(Protocol):
    """A part with a name and options, as ``options.parts`` reads it."""

    @property
    def name(self) -> str:
        """Name of the part."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The part's options, by name."""


@dataclass(slots=True)
class _Bounds:
    """The texts that may name code, and the data from files, which may not name code.

    Attributes:
        texts: Texts that may name code, each with the folders to which its relative paths refer.
        trust: Whether any text may name code.
        own_files: Whether a file of options that the user named is trusted like the user's own text.
        flag: Whether the caller has an option ``trust``, so that messages can suggest it.
        found: Data that was read, by file, for error messages.
    """

    texts: list[tuple[str, tuple[Path, ...]]]
    trust: bool
    own_files: bool
    flag: bool
    found: list[tuple[str, Any]] = field(default_factory=list)


_active: _Bounds | None = None


@contextlib.contextmanager
def bounds(
    texts: Iterable[str] = (), *, trust: bool = False, own_files: bool = False, flag: bool = True
) -> Iterator[None]:
    """Within the ``with`` block, let only the given texts name code to import.

    Within another such block, this has no effect, since only the outermost caller has the texts that the user typed.

    Args:
        texts: Texts that the user typed.
        trust: Whether every text may name code.
        own_files: Whether a file of options that the user named is trusted like the user's own text.
        flag: Whether the caller has an option ``trust``, which messages can then suggest.
    """
    global _active
    if _active is not None:
        yield
        return
    _active = _Bounds([(text, (Path.cwd(),)) for text in texts], trust, own_files, flag)
    try:
        yield
    finally:
        _active = None


def own(values: Any, *folders: Path) -> None:
    """Allow all texts within a value to name code.

    Args:
        values: A text, or mappings and lists of texts: options that the user wrote.
        *folders: The folders to which relative paths refer, in addition to the current folder.
    """
    if _active is not None:
        places = (*folders, Path.cwd())
        _active.texts += [(text, places) for _, text in _texts(values) if isinstance(text, str)]


def own_file(path: Path, values: Any) -> None:
    """Record the values of a file of options that the user named.

    If the command trusts such files, the values are trusted like typed ones; otherwise they are only recorded, so that
    messages can name the file.
    """
    if _active is None:
        return
    if _active.own_files:
        folder = path.resolve().parent
        own(values, folder, folder.parent)
    else:
        _active.found.append((str(path), values))


def own_module(file: str | None) -> None:
    """Allow all texts in a module's source to name code: the user named the module, so its code runs anyway."""
    if _active is None or file is None or not file.endswith(".py"):
        return
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    own(texts, Path(file).resolve().parent)


def found(path: Path, values: Any, only: Any = None) -> bool:
    """Check data from a file, such as the options of a run, before it is used.

    Options with which this user began a run are trusted; see ``is_recorded``.

    Args:
        path: The file or the folder, for the error message.
        values: Everything that was read from the file.
        only: The part of ``values`` that is used; ``None`` if all of it is used.

    Returns:
        Whether the data may name code, because the user trusts it or began a run with it.

    Raises:
        UntrustedError: The data chooses a sandbox, a resource limit above the one in ``HIGHEST_LIMITS``, an
            environment variable, an address, a file to write, a model's own code, or an option of another package that
            is not known to be harmless.
    """
    if trusts():
        return True
    if is_recorded(path, values):
        own(values)
        return True
    if _active is not None:
        _active.found.append((str(path), values))
    for place, value in _texts(values if only is None else only):
        if (what := _chosen(place, value)) is not None:
            raise _refused(f"{path} chooses {what}")
    return False


def trusts() -> bool:
    """Whether the user trusts every file: ``--trust``, or a surrounding ``bounds(trust=True)``."""
    return _active is not None and _active.trust


def check_code(written: str, file: str | None) -> None:
    """Raise an error unless the user named the code that is about to be imported.

    Args:
        written: The name of the code, as it was read.
        file: The file of the code; ``None`` if a module was named.

    Raises:
        UntrustedError: The user did not name the code.
    """
    if _active is None or _active.trust:
        return
    whole = re.compile(rf"(?<![\w./-]){re.escape(file or written)}(?![\w.-])")
    wanted = None if file is None else Path(file).resolve()
    for text, folders in _active.texts:
        if whole.search(text):
            return
        if wanted is not None and any(wanted == (each / one).resolve() for one in _files(text) for each in folders):
            return
    raise _refused(f"{_place_of(written)} names the Python code {written}")


def check_server(part: NamedPart, within: Callable[[Any], Iterable[NamedPart]]) -> None:
    """Raise an error unless the user named the MCP server that is about to be started, and its rights.

    Args:
        part: The server: its name is ``mcp:`` and a file, an address or a command.
        within: Returns every part that a value names, such as ``options.parts.parts_within``.

    Raises:
        UntrustedError: The user did not name the server, or a file sets an option that gives the server more rights.
    """
    if _active is None or _active.trust:
        return

    def given(values: Any) -> list[Mapping[str, Any]]:
        return [one.options for one in within(values) if one.name == part.name]

    typed = given([text for text, _ in _active.texts])
    if not typed:
        raise _refused(f"{_place_of(part.name)} names the MCP server {part.name}")
    for option in sorted(_RIGHTS.intersection(part.options).difference(*typed)):
        for path, values in _active.found:
            if any(option in options for options in given(values)):
                raise _refused(f"{path} sets the option {option} of the MCP server {part.name}")


def record(path: Path, options: Mapping[str, Any]) -> None:
    """Record that, in the current working folder, this user began a run with these options at this path.

    A failure to write the record is ignored.
    """
    with contextlib.suppress(OSError):
        folder = _state_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / _digest(path, options)).write_text(f"{path.resolve()}\n", "utf-8")


def is_recorded(path: Path, options: Any) -> bool:
    """Whether, in the current working folder, this user began a run with these options at this path; see ``record``.

    The working folder must be the same because the options may name files of code relative to it.
    """
    return isinstance(options, Mapping) and (_state_folder() / _digest(path, options)).is_file()


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(base, "rstar2-env", "runs")


def _digest(path: Path, options: Mapping[str, Any]) -> str:
    said = json.dumps(options, sort_keys=True, default=str)
    return hashlib.sha256(f"{path.resolve()}\0{Path.cwd()}\0{said}".encode("utf-8", "surrogatepass")).hexdigest()


def _refused(said: str) -> UntrustedError:
    said += ". Only options on the command line may do this"
    if _active is not None and not _active.flag:
        return UntrustedError(f"{said}: give the option on the command line.")
    return UntrustedError(f"{said}, unless you trust the file.", option="trust")


def _place_of(written: str) -> str:
    """Return the data file and the option that contain ``written``, for error messages; "A file" if unknown."""
    assert _active is not None
    for path, values in reversed(_active.found):
        for place, value in _texts(values):
            if isinstance(value, str) and written in value:
                return f"{path} ({place})"
    return "A file"


def _files(text: str) -> set[str]:
    """Return the names of Python files in a text; a name may contain spaces if it is the whole text."""
    if ".py" not in text or "\0" in text:
        return set()
    return {f"{text.rpartition('.py')[0]}.py", *_FILE.findall(text)}


def _texts(values: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its place, the dotted name of its option.

    Lists and mappings within a list are not yielded themselves, only their values. The names of each mapping are
    yielded too, as ``_Name``.
    """
    if isinstance(values, Mapping):
        for name, value in values.items():
            inner = f"{place}.{name}" if place else str(name)
            yield inner, _Name(name)
            if isinstance(value, (Mapping, list, tuple)):
                yield inner, value
            yield from _texts(value, inner)
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _texts(value, place)
    else:
        yield place, values


def _last(place: str) -> str:
    return place.rpartition(".")[2]


def _chosen(place: str, value: Any) -> str | None:
    """Describe an option's value if only the user may choose it ("a sandbox (...)"); otherwise return ``None``."""
    if isinstance(value, str) and _SERVER.search(value):
        return f"an MCP server ({place} = {_short(value)})"
    if isinstance(value, str) and _WRITES.search(value):
        return f"a file to write ({place} = {_short(value)})"
    if not isinstance(value, _Name) and value not in _EMPTY and (what := _kind(place, value)):
        return f"{what} ({place} = {_short(value)})"
    if isinstance(value, str):
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), value)  # JSON may escape any letter in this way
        for pair in _PAIR.finditer(text):
            name = pair[1] or pair[2]
            if "limits" not in name.split(".") and (what := _kind(name, "…")):  # limits: checked below, by value
                return f"{what} ({place} = {_short(value)})"
        if "limits" in f"{place} {text}":
            for setting in _SETTING.finditer(text):
                if what := _limit(setting[1], setting[2]):
                    return f"{what} ({place} = {_short(value)})"
    return None


def _kind(place: str, value: Any) -> str | None:
    name = _last(place)
    if name == "sandbox" and not _is_safe_sandbox(value):
        return "a sandbox"
    for holder, inner in pairwise(place.split(".")):
        if holder == "sandbox" and not _is_safe_sandbox({inner: value}):
            return "a sandbox"
        if inner not in _SAFE_OPTIONS.get(holder, {inner}):
            return f"the option {inner} of another package"
        if holder == "limits" and (what := _limit(inner, value)):
            return what
    if name == "isolation" and value != "strict":
        return "the isolation of a sandbox"
    if name == "trust_remote_code" or (name == "attn_implementation" and "/" in str(value)):
        return "the code of a model"
    if not isinstance(value, (str, list)):
        return None
    if _VARIABLE.fullmatch(name):
        return "an environment variable"
    if _ADDRESS.fullmatch(name):
        return "an address"
    return None


def _limit(name: str, value: Any) -> str | None:
    """Describe a resource limit above the highest value that data from a file may set; ``None`` for other values."""
    most = HIGHEST_LIMITS.get(name)
    if most is None:
        return None
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value) else math.inf
    if isinstance(value, (int, float)) and value <= most:
        return None
    return f"a limit {name} of programs above {most:g}"


def _is_safe_sandbox(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return bool(value == "local")
    safe = {name: _SAFE_SANDBOX.get(name, ()) for name in value}
    return all(safe[name] is None or one in (safe[name] or ()) for name, one in value.items())


def _short(value: Any, longest: int = 80) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
