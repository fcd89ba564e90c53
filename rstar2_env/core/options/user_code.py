"""Loads parts from the user's code, named ``module:Name``, ``./file.py:Name`` or ``./file.py``.

Covered: modules in the current folder, which is added to ``sys.path`` since a console script lacks it; a file by its
path, loaded once under its own name so that other processes can import it; errors that name the file and the line. Not
covered: a file that changed after it was loaded (start a new process), and pickles of objects from a file that has the
same name as another module (only forked processes can load them; rename the file or put it into a package).
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.given_path import check_given

_FILE = re.compile(r"(?P<file>.*\.py)(?::(?P<name>.*))?", re.DOTALL)
_MODULE = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>.+)", re.DOTALL)
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class Shape:
    """Recognizes parts of one kind in a user's file, if the user gives only the file without the part's name.

    Attributes:
        fits: Function that returns whether an object looks like such a part.
        words: A description of such a part, for error messages: "a class with reset and act".
        strict: Whether an object that does not fit is refused even if the user names it. Otherwise a named callable is
            accepted, because it may create the part.
    """

    fits: Callable[[Any], bool]
    words: str
    strict: bool = False


@dataclass(frozen=True, slots=True)
class UserCodeName:
    """Location of a part in the user's code.

    Attributes:
        written: The location as the user wrote it.
        file: File of the part; ``None`` if a module was named.
        module: Module of the part; "" if a file was named.
        name: Name of the part in the file or module; "" if the user gave only a file, which must contain exactly one
            part of the required kind.
    """

    written: str
    file: str | None
    module: str
    name: str

    def load(self) -> ModuleType:
        """Import the file or the module.

        Raises:
            UntrustedError: The name of the code comes from a file and not from the user.
            ConfigurationError: The code does not exist, or its import fails; the message names file and line.
        """
        trust.check_code(self.written, self.file)
        module = load_module(self.module) if self.file is None else load_file(self.file)
        trust.own_module(module.__file__)
        return module


def user_code_name(written: str) -> UserCodeName | None:
    """Parse ``module:Name`` or ``file.py:Name``; return ``None`` for a name that has neither form."""
    if match := _FILE.fullmatch(written):
        return UserCodeName(written, match["file"], "", match["name"] or "")
    if match := _MODULE.fullmatch(written):
        return UserCodeName(written, None, match["module"], match["name"])
    return None


def find_user_code(own: UserCodeName, kind: str, shape: Shape | None, registered: Mapping[str, Any]) -> Any:
    """Load the user's code and return the part in it.

    Args:
        own: Location of the part.
        kind: Kind of the part, for error messages ("agent").
        shape: How to recognize a part of this kind; without it a file must be given with the part's name.
        registered: Registered parts of this kind, including those that the user's code registers when it is loaded.

    Raises:
        ConfigurationError: The code cannot be imported, or has no such part.
    """
    module = own.load()
    theirs = {name: part for name, part in registered.items() if getattr(part, "__module__", "") == module.__name__}
    if own.name:
        found = getattr(module, own.name, theirs.get(own.name))
        if found is None:
            raise _absent(own, module, kind, shape, theirs)
        loose = callable(found) and (shape is None or not shape.strict)
        if not loose and not (shape is not None and shape.fits(found)):
            what = "a class" if inspect.isclass(found) else type(found).__name__
            raise ConfigurationError(
                f"{own.written} is {what}, which is not valid as {kind}: expected {_words(shape)}."
            )
        return found
    fitting = {**candidates(module, shape), **theirs}
    distinct = {id(part): name for name, part in reversed(fitting.items())}
    if len(distinct) == 1:
        return next(iter(fitting.values()))
    if not fitting:
        raise ConfigurationError(
            f"{own.written} holds no {kind}: expected {_words(shape)} at the top level of the file."
        )
    names = sorted(distinct.values())
    raise ConfigurationError(
        f"{own.written} defines {len(names)} objects that could be the {kind} ({', '.join(names)}): name one of them, "
        f"for example {own.written}:{names[0]}."
    )


def candidates(module: ModuleType, shape: Shape | None) -> dict[str, Any]:
    """Return the parts that a module defines, by name: its public objects that ``shape`` recognizes."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        # An object that is neither a class nor a function does not record its module.
        and (not callable(value) or getattr(value, "__module__", None) == module.__name__)
        and shape is not None
        and shape.fits(value)
    }


def load_module(name: str) -> ModuleType:
    """Import a module, with the current folder on the path as in ``python -m``.

    Raises:
        ConfigurationError: The module does not exist, or its import fails; the message names file and line.
    """
    here = str(Path.cwd())
    with _lock:
        if "" not in sys.path and here not in sys.path:
            sys.path.insert(0, here)
            importlib.invalidate_caches()
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{name}.".startswith(f"{error.name}."):
                raise ConfigurationError(
                    f"There is no module {error.name!r}, neither in the current folder {here} nor among the installed "
                    "packages."
                ) from error
            raise _failed(f"The module {name}", error) from error
        except (Exception, SystemExit) as error:
            raise _failed(f"The module {name}", error) from error


def load_file(path: str | os.PathLike[str]) -> ModuleType:
    """Import a Python file once, and add its folder to the path for imports of neighbouring files.

    The module gets the file's name, under which other processes can import it too. If another module has that name, the
    module's name is derived from the path.

    Raises:
        ConfigurationError: The file does not exist, or its import fails; the message names file and line.
    """
    whole = Path(path).resolve()
    check_given(Path(path), "give a Python file", kind="file")
    with _lock:
        folder = str(whole.parent)
        if folder not in sys.path:
            # Last on the path: a neighbouring file must not hide an installed module of the same name.
            sys.path.append(folder)
            importlib.invalidate_caches()
        name = whole.stem
        if not _is(name, whole):
            digest = hashlib.blake2b(str(whole).encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
            name = f"{re.sub(r'[^0-9A-Za-z]', '_', whole.stem)}_{digest}"
        if (loaded := sys.modules.get(name)) is not None:
            return loaded
        spec = importlib.util.spec_from_file_location(name, whole)
        assert spec is not None  # its name ends in .py
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise _failed(str(path), error) from error
        return module


def _is(name: str, whole: Path) -> bool:
    """Whether importing the module ``name`` would import the file ``whole``, a resolved path."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == whole


def _failed(what: str, error: BaseException) -> ConfigurationError:
    """Return the error to raise if an import of the user's code fails.

    Its message names the innermost line of the traceback that is in the user's code.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return ConfigurationError(f"{what} cannot be imported: {error.filename}, line {error.lineno}: {error.msg}.")
    return ConfigurationError(f"{what} cannot be imported: {place_of(error)}{type(error).__name__}: {error}")


def place_of(error: BaseException) -> str:
    """Return the innermost line of the traceback that is in the user's code ("mine.py, line 3: "); "" if no line is."""
    lines = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__) if _is_users(frame)
    ]
    return f"{lines[-1][0]}, line {lines[-1][1]}: " if lines else ""


def _is_users(frame: FrameType) -> bool:
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
    installed = file.startswith(("<", sys.base_prefix + "/lib")) or "site-packages" in file
    return not installed and module.partition(".")[0] != "rstar2_env"


def _absent(
    own: UserCodeName, module: ModuleType, kind: str, shape: Shape | None, registered: Mapping[str, Any]
) -> ConfigurationError:
    fitting = sorted({*candidates(module, shape), *registered})
    public = [name for name in vars(module) if not name.startswith("_")]
    near = difflib.get_close_matches(own.name, fitting or public, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    has = f" It holds: {', '.join(fitting)}." if fitting else f" Expected {_words(shape)}."
    where = own.file if own.file is not None else f"The module {own.module}"
    return ConfigurationError(f"{where} holds no {kind} named {own.name!r}.{hint}{has}")


def _words(shape: Shape | None) -> str:
    return "a class or a function" if shape is None else shape.words


def is_class_with(*methods: str) -> Callable[[Any], bool]:
    """Return a test for classes that have all the given methods; ``__call__`` may be one of them."""

    def fits(value: Any) -> bool:
        return inspect.isclass(value) and all(
            any(callable(vars(base).get(method)) for base in value.__mro__) for method in methods
        )

    return fits


def is_called_with(arguments: int, *, coroutine: bool = False) -> Callable[[Any], bool]:
    """Return a test for functions, or classes with callable instances, that accept ``arguments`` positional arguments.

    Args:
        arguments: The number of arguments.
        coroutine: Whether the function (or the method ``__call__``) must be a coroutine function; otherwise it must not
            be one.
    """

    def fits(value: Any) -> bool:
        if inspect.isclass(value):
            call = next((vars(base)["__call__"] for base in value.__mro__ if "__call__" in vars(base)), None)
            given = arguments + 1
        else:
            call, given = value, arguments
        if not inspect.isfunction(call) or inspect.iscoroutinefunction(call) is not coroutine:
            return False
        by_position = [one for one in inspect.signature(call).parameters.values() if one.kind <= one.VAR_POSITIONAL]
        needed = sum(one.default is one.empty and one.kind < one.VAR_POSITIONAL for one in by_position)
        return needed <= given and (len(by_position) >= given or any(o.kind == o.VAR_POSITIONAL for o in by_position))

    return fits
