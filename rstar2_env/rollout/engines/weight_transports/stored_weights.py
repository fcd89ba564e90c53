"""``StoredWeights``: keeps the newest weights of a run in a folder, for weight syncs and for servers that restart."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor

from rstar2_env.core.errors import ServiceError
from rstar2_env.rollout.engines.vllm_server_fleet import Server
from rstar2_env.rollout.engines.weight_transports.buckets import writing
from rstar2_env.rollout.engines.weight_transports.settings import TransportSettings


class StoredWeights:
    """The newest weights of a run, in a folder that every process of the run finds under the same path.

    Args:
        setting: Settings of the engine.
        folder: Folder in which each version gets its own subfolder; it needs room for two copies.
        kind: Kind of the weights (``weights`` or ``adapter``), part of the names of the subfolders.
    """

    def __init__(self, setting: TransportSettings, folder: Path, kind: str) -> None:
        self._setting, self._at, self._kind = setting, folder, kind
        self._written: Path | None = None

    @contextmanager
    def new(self, version: int, *, keep: Collection[str] = ()) -> Iterator[Path]:
        """Write new weights within the ``with`` block; if the block fails, the previous version stays newest.

        Args:
            version: Version of the new weights.
            keep: Names of the subfolders of earlier versions that are not removed afterwards.

        Yields:
            An empty folder for the new weights; call ``commit`` when it is complete.
        """
        before, self._written = self._written, self.path(version)
        part = self._part(version)
        try:
            for left in (self._written, part):  # a killed run may have left them
                shutil.rmtree(left, ignore_errors=True)
            part.mkdir(parents=True)
            yield part
        except BaseException:
            for left in (self._written, part):
                shutil.rmtree(left, ignore_errors=True)
            self._written = None if before == self._written else before
            raise
        for old in self._at.glob(self.path("*").name):
            if old != self._written and old.name not in keep:
                shutil.rmtree(old, ignore_errors=True)

    def commit(self, version: int) -> Path:
        """Mark the new version as complete, and return its folder."""
        return self._part(version).rename(self.path(version))

    def writing(self, weights: Iterable[tuple[str, Tensor]], part: Path) -> Iterator[tuple[str, Tensor]]:
        """Yield weights unchanged, and write them into the folder of the new weights."""
        return writing(weights, part, bucket_bytes=self._setting.bucket_bytes)

    def newest(self) -> Path | None:
        """Return the folder of the newest weights; ``None`` if the servers still have their initial weights.

        Raises:
            ServiceError: Another process of the run is still writing the weights.
        """
        if self._written is not None:
            return self._written
        version = self._setting.version()
        shared = self.path(version)
        if shared.exists():
            return shared
        if version:
            raise ServiceError(f"The weights of version {version} are not in {self._at} yet.")
        return None

    async def reload(self, server: Server) -> None:
        """After a server has come back, order it to read the newest weights.

        Called in the event loop of the servers' client.

        Raises:
            ServiceError: The weights are not available, or the server did not read them.
        """
        newest = self.newest()
        if newest is not None:
            await self._setting.http.ask("POST", server.base, "/collective_rpc", reload_from(newest), retries=0)
            if newest != self.newest():
                raise ServiceError(
                    f"Newer weights were written while the server read the weights {newest.name}, so the server does "
                    "not have the newest weights."
                )

    def remove(self) -> None:
        """Remove the weights that this object wrote."""
        if self._written is not None:
            for folder in self._at.glob(self.path("*").name):
                shutil.rmtree(folder, ignore_errors=True)
            self._written = None

    def path(self, version: int | str) -> Path:
        """Return the folder for the weights of a version."""
        return self._at / f"rstar2-{self._kind}-{self._setting.run}-{version}"

    def _part(self, version: int) -> Path:
        return self.path(version).with_name(f"{self.path(version).name}.part")


def reload_from(folder: Path) -> dict[str, object]:
    """Return the body of a request to ``/collective_rpc`` that makes a vLLM server read weights from a folder."""
    return {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
