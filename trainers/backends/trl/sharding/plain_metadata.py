"""``PlainReader``: torch's reader of checkpoint shards, restricted so that it unpickles only metadata classes.

torch reads ``.metadata``, and every entry that is not a tensor, with an unrestricted ``pickle``, which runs code. This
reader unpickles only the classes of the metadata itself, and the planner refuses entries that are not tensors. Not
covered: reading the tensors, for which torch itself calls ``torch.load(weights_only=True)``.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch
from torch.distributed.checkpoint import metadata
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.planner import ReadItem

_CLASSES = {
    "torch.distributed.checkpoint.metadata": {
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo", "_StoragePrefix"},
    "torch": {"Size", "device", "strided", *(name for name in dir(torch) if type(getattr(torch, name)) is torch.dtype)},
    "torch.serialization": {"_get_layout"},
    "pathlib": {"Path", "PosixPath", "PurePosixPath"},
    "pathlib._local": {"Path", "PosixPath", "PurePosixPath"},
    "collections": {"OrderedDict"},
}
"""Classes and constants in the metadata of a checkpoint, by module."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return the class that a pickled file refers to, if checkpoint metadata may contain it.

        Raises:
            pickle.UnpicklingError: Metadata never contains this class.
        """
        if name not in _CLASSES.get(module, ()):
            raise pickle.UnpicklingError(
                f"the file refers to {module}.{name}, which does not belong to the metadata of a checkpoint"
            )
        return super().find_class(module, name)


class PlainReader(FileSystemReader):
    """Reads the shards of a checkpoint without running code from the checkpoint's metadata."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> metadata.Metadata:
        """Return the metadata of the checkpoint.

        Raises:
            pickle.UnpicklingError: The file holds anything other than metadata.
        """
        path = self.fs.concat_path(self.path, ".metadata")
        with self.fs.create_stream(path, "rb") as file:
            found = _Unpickler(io.BytesIO(file.read())).load()
        if not isinstance(found, metadata.Metadata):
            raise pickle.UnpicklingError(
                f"the file contains an object of the type {type(found).__name__} instead of the metadata of a "
                "checkpoint"
            )
        about = getattr(found, "storage_meta", None) or metadata.StorageMeta()
        about.load_id = self.load_id
        found.storage_meta = about
        return found


class TensorPlanner(DefaultLoadPlanner):
    """Plans the reading of tensors, and refuses entries that are not tensors."""

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Refuse an entry that is not a tensor: torch would unpickle it.

        Raises:
            pickle.UnpicklingError: Always.
        """
        raise pickle.UnpicklingError(f"{read_item.dest_index.fqn} is not a tensor")
