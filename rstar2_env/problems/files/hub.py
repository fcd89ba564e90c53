"""Hugging Face data sets: a folder written by ``save_to_disk``, or a data set on the Hub.

Covered: reading these data sets memory-mapped, with ``datasets`` imported only when needed; choosing a split; errors
that state what is missing. Not covered: data sets that run their own code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.net.hub import ask_hub
from rstar2_env.problems.files.columns import Columns


class DatasetTable:
    """The rows of a ``datasets.Dataset``, which stays memory-mapped.

    Args:
        dataset: The data set.
        name: Its name in error messages.
        columns: Maps the columns of records to fields of a problem.
    """

    def __init__(self, dataset: Any, name: str, columns: Columns) -> None:
        if columns.keep is not None:
            wanted = set(columns.top_level())
            # Solutions can take a hundred times the bytes of the questions, so columns that are not read are not
            # decoded.
            dataset = dataset.select_columns([column for column in dataset.column_names if column in wanted])
        self._dataset, self._name, self._columns = dataset, name, columns

    def __len__(self) -> int:
        return len(self._dataset)

    def row(self, index: int) -> tuple[str, int, Any]:
        """Return the place, the number and the fields of record ``index``, from 0; see ``Table.row``."""
        return self._named(index, self._dataset[index])

    def rows(self) -> Iterator[tuple[str, int, Any]]:
        """Yield the result of ``row`` for every record, in order; ``datasets`` decodes the records in batches."""
        return (self._named(index, record) for index, record in enumerate(self._dataset))

    def _named(self, index: int, record: Any) -> tuple[str, int, Any]:
        place = f"{self._name}:{index + 1}"
        return place, index + 1, self._columns(record, place)


def is_saved_dataset(path: Path) -> bool:
    """Whether a folder was written by ``save_to_disk``."""
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def open_saved(path: Path, split: str, columns: Columns) -> DatasetTable:
    """Open a folder that ``save_to_disk`` wrote.

    Args:
        path: The folder.
        split: Name of the split, if there are several.
        columns: Maps the columns of records to fields of a problem.

    Raises:
        ConfigurationError: The folder was not written by ``save_to_disk``, or has no such split.
        MissingExtraError: ``datasets`` is not installed.
    """
    if not is_saved_dataset(path):
        raise ConfigurationError(
            f"The folder {path} was not written by datasets.save_to_disk: give such a folder, or a file."
        )
    datasets = _datasets(f"Reading the data set {path}")
    try:
        found = datasets.load_from_disk(str(path))
    except Exception as error:
        raise ConfigurationError(f"The data set {path} cannot be read: {type(error).__name__}: {error}") from error
    if isinstance(found, Mapping):
        if split not in found:
            raise ConfigurationError(
                f"The data set {path} has the splits {', '.join(map(str, found))}, but not {split!r}."
            )
        found = found[split]
    return DatasetTable(found, str(path), columns)


def hub_rows(
    repository: str,
    config: str | None,
    split: str,
    *,
    revision: str | None = None,
    download: bool = True,
    hub_folder: str | None = None,
) -> Any:
    """Return the rows of a data set on the Hub, or of a copy of it, as a ``datasets.Dataset``.

    ``datasets`` downloads the data set once and caches it.

    Args:
        repository: ``owner/name``.
        config: The configuration, if there are several; otherwise ``None``.
        split: Name of a split, as the data set names it.
        revision: Branch, tag or commit; ``None`` for the newest commit, or for the commit of the copy.
        download: Load the data set from the Hub; otherwise use only data on this machine.
        hub_folder: A folder of copies (see ``find_copy``); ``None`` for the cache of the Hub's libraries.

    Raises:
        ConfigurationError: The Hub cannot be reached, or has no such data set, configuration or split.
        MissingExtraError: ``datasets`` is not installed.
    """
    datasets = _datasets(f"Reading {repository} from the Hugging Face hub")
    copy = find_copy(repository, revision, hub_folder) if hub_folder or not download else None
    options: dict[str, str] = {}
    if copy is not None:
        options["cache_dir"] = _cache_of(datasets, copy.path)
    elif revision is not None:
        options["revision"] = revision
    why: str | None = None
    if copy is None and hub_folder:
        why = f"{hub_folder} does not contain a copy of it{f' at revision {revision}' if revision else ''}"
    elif copy is None and not download:
        why = "it is not in the cache of this machine, and downloads are switched off"
    elif copy is None:
        why = ask_hub("datasets", repository)
    try:
        if copy is None and hub_folder:
            raise FileNotFoundError(why)
        # Offline, a copy is read from its folder, and cached data without a request to the Hub.
        with _offline(datasets) if why or copy or not download else contextlib.nullcontext():
            return datasets.load_dataset(repository if copy is None else str(copy.path), config, split=split, **options)
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise ConfigurationError(
            f"The data set {repository} (configuration {config or 'default'}, split {split}) cannot be loaded: "
            f"{why or f'{type(error).__name__}: {reason}'}. Without a network: load the data set on a machine that "
            "has a network, write it with save_to_disk, copy the folder here, and pass the path of the folder; for "
            "a set that `rstar2 problems sources` names, add like=NAME, so that its columns are read the same way."
        ) from error


@dataclass(frozen=True, slots=True)
class HubCopy:
    """A copy of a data set of the Hub on this machine.

    Attributes:
        path: Its folder.
        revision: The commit of the copy; ``None`` if the folder does not record it.
    """

    path: Path
    revision: str | None = None


def find_copy(repository: str, revision: str | None = None, hub_folder: str | None = None) -> HubCopy | None:
    """The copy of a data set on this machine, or ``None``.

    Args:
        repository: ``owner/name``.
        revision: Branch, tag or commit; ``None`` for the branch ``main``. A copy in ``owner/name`` does not
            record its commit, so it is accepted for any revision.
        hub_folder: A folder of copies: each is ``owner/name`` below it, as ``hf download --local-dir`` writes it, or
            ``datasets--owner--name`` with its snapshots, as the Hub's libraries cache it. ``None`` means the cache of
            these libraries.
    """
    if hub_folder is None:
        try:
            from huggingface_hub import constants
        except ImportError:
            return None
        hub_folder = constants.HF_HUB_CACHE
    root = Path(hub_folder)
    cached = root / f"datasets--{repository.replace('/', '--')}"
    wanted = revision or "main"
    with contextlib.suppress(OSError):
        wanted = (cached / "refs" / wanted).read_text("utf-8").strip()
    if (cached / "snapshots" / wanted).is_dir():
        return HubCopy(cached / "snapshots" / wanted, wanted)
    return HubCopy(root / repository) if (root / repository).is_dir() else None


def _cache_of(datasets: Any, copy: Path) -> str:
    """Return the cache folder for the tables of a copy: a separate folder for every state of the copy.

    ``datasets`` distinguishes two copies of a configuration only by the name of their folder, and would return the rows
    of the first copy for the second, or for the same copy after a change.
    """
    files = sorted(
        (str(file.relative_to(copy)), status.st_size, status.st_mtime_ns)
        for file in copy.rglob("*")
        if file.is_file() and ".git" not in file.parts and (status := file.stat())
    )
    digest = blake2b(repr((str(copy.resolve()), files)).encode(), digest_size=8).hexdigest()
    return str(Path(datasets.config.HF_DATASETS_CACHE) / "copies" / digest)


@contextlib.contextmanager
def _offline(datasets: Any) -> Iterator[None]:
    """Within the ``with`` block, let ``datasets`` use only data on this machine, without requests to the Hub."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _datasets(needed_for: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("train", needed_for) from error
    return datasets
