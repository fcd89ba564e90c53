"""``Push``: pushes an exported folder to a model repository on a Hugging Face hub; without torch.

The token, the permission to write and the content of the repository are checked before anything is written. The token
is huggingface_hub's (``HF_TOKEN``, or ``hf auth login``) and never appears in a message; ``HF_ENDPOINT`` names the hub.
To resume an interrupted push, call it again: files that are already on the hub are not sent again. Not covered:
data sets, pull requests, deleting.
"""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, ServiceError
from rstar2_env.core.files.outputs import MANIFEST
from rstar2_env.core.net.hub import hub_answer
from rstar2_env.core.secret import Secret, hidden

_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,94}\w)?/\w(?:[\w.-]{0,94}\w)?", re.ASCII)
_UNSENT = ("export.json", MANIFEST)
"""Files of an export that are not pushed."""
_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin", "adapter_*", "*.py")
"""Name patterns of the files that an update deletes from the repository if the export does not contain them."""


class Push:
    """A push to a repository; the constructor checks with the hub whether it is possible.

    Args:
        name: ``ORG/NAME``, or ``USER/NAME``.
        private: Whether the repository must be private; an existing public repository is then rejected.
        update: Allow pushing to a repository that holds other files, as a new commit.

    Attributes:
        url: Web address of the model.

    Raises:
        ConfigurationError: The name is not valid, the token is missing or may not write, or the hub is disabled.
        ServiceError: The hub cannot be reached.
        MissingExtraError: huggingface_hub is not installed.
    """

    def __init__(self, name: str, *, private: bool = False, update: bool = False) -> None:
        try:
            from huggingface_hub import constants, get_token
        except ImportError as error:
            raise MissingExtraError("train", "Uploading weights") from error
        self.name, self._private, self._update = name, private, update
        if not _NAME.fullmatch(name) or "--" in name or ".." in name or name.endswith(".git"):
            raise ConfigurationError(
                f"{name!r} is not the name of a repository: expected ORG/NAME, each of letters, digits, "
                "'-', '_' and '.'.",
                option="push",
            )
        if constants.HF_HUB_OFFLINE:
            raise ConfigurationError(
                "Nothing can be uploaded while the environment variable HF_HUB_OFFLINE is set: unset it.", option="push"
            )
        token = get_token()
        if not token:
            raise ConfigurationError(
                "An upload needs a token of the Hugging Face hub with write permission: put it into the "
                "environment variable HF_TOKEN, or run `hf auth login`.",
                option="push",
            )
        self._token = Secret(token)
        self.url = f"{constants.ENDPOINT}/{name}"
        self._check_owner()
        self._files = self._held()

    def send(self, folder: Path, *, message: str) -> str | None:
        """Push a folder; create the repository if it does not exist.

        Args:
            folder: The folder; its files are pushed, without subfolders.
            message: The commit message.

        Returns:
            The commit's id; ``None`` if the hub already has these files.

        Raises:
            ConfigurationError: The repository holds other files.
            ServiceError: The hub rejected the push, or the connection was lost; calling again resumes it.
        """
        own = {path.name: path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in _UNSENT}
        if self._files is not None:
            held = {name: about for name, about in self._files.items() if name != ".gitattributes"}
            same = [name for name, about in held.items() if name in own and _is(own[name], about)]
            if len(same) == len(own) == len(held):
                return None
            others = sorted(set(held) - set(same))
            if others and not self._update:
                raise ConfigurationError(
                    f"The repository {self.name} holds other files, such as {others[0]}: choose another "
                    "name, or allow the update of the repository.",
                    option="update",
                )
        return self._send(folder, list(own), message)

    def _send(self, folder: Path, names: list[str], message: str) -> str:
        from huggingface_hub import HfApi
        from huggingface_hub.utils.tqdm import (
            are_progress_bars_disabled,
            disable_progress_bars,
            enable_progress_bars,
        )

        api = HfApi(token=self._token.reveal())
        quiet = not sys.stderr.isatty() and not are_progress_bars_disabled()
        if quiet:
            disable_progress_bars()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about metadata that the hub recommends
                if self._files is None:
                    api.create_repo(self.name, private=self._private, exist_ok=True)
                found = api.upload_folder(
                    repo_id=self.name,
                    folder_path=folder,
                    allow_patterns=names,
                    delete_patterns=list(_WEIGHTS) if self._update else None,
                    commit_message=message,
                )
        except Exception as error:  # from the HTTP library that this version of huggingface_hub uses
            raise self._told(error, folder) from error
        finally:
            if quiet:
                enable_progress_bars()
        return str(found.oid)

    def _told(self, error: Exception, folder: Path) -> ServiceError:
        status = getattr(getattr(error, "response", None), "status_code", None)
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ is not None else error
        lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
        said = hidden(f"{type(cause).__name__}: {lines[0] if lines else 'no reason given'}")
        rights = " The token does not have permission to write to this repository." if status == 403 else ""
        return ServiceError(
            f"The model was not uploaded to {self.name}: {said.removesuffix('.')}.{rights} The weights "
            f"are in {folder}; run the same command again to resume the upload.",
            cause="refused" if status is not None and status < 500 else "lost",
        )

    def _check_owner(self) -> None:
        """Check that the token is valid, may write, and belongs to the named user or a member of the organization."""
        status, record = hub_answer("/api/whoami-v2", self._token)
        if status in (401, 403):
            raise ConfigurationError(
                "The Hugging Face hub rejects the token, because it is wrong or expired: put a token "
                "with write permission into the environment variable HF_TOKEN, or run `hf auth login`.",
                option="push",
            )
        if status != 200 or not isinstance(record, Mapping):
            raise ServiceError(
                f"The Hugging Face hub answered the request for the owner of the token with HTTP status {status}: "
                "try again later.",
                cause="passing",
            )
        access = record.get("auth", {}).get("accessToken") or {}
        if access.get("role") == "read":
            raise ConfigurationError(
                "The token of the Hugging Face hub does not have write permission: put a token with "
                "write permission into the environment variable HF_TOKEN.",
                option="push",
            )
        owner = self.name.partition("/")[0]
        members = [str(record.get("name", "")), *(str(one.get("name", "")) for one in record.get("orgs", []))]
        if owner not in members:
            raise ConfigurationError(
                f"The token of the Hugging Face hub belongs to {members[0]}, who is not a member of "
                f"{owner!r}: push to one of {', '.join(members)}.",
                option="push",
            )

    def _held(self) -> dict[str, Any] | None:
        """Return the hub's record of each file of the repository, by file name; ``None`` if there is no repository."""
        status, record = hub_answer(f"/api/models/{self.name}?blobs=true", self._token)
        if status in (401, 403, 404):
            return None
        if status != 200 or not isinstance(record, Mapping):
            raise ServiceError(
                f"The Hugging Face hub answered with HTTP status {status} to the request for the files of "
                f"{self.name}: try again later.",
                cause="passing",
            )
        if self._private and not record.get("private", False):
            raise ConfigurationError(
                f"The repository {self.name} already exists and is public, but a private one was "
                "requested: choose another name, or make the repository private in its settings.",
                option="private",
            )
        return {str(one["rfilename"]): one for one in record.get("siblings", [])}


def _is(path: Path, about: Mapping[str, Any]) -> bool:
    """Return whether a file equals the hub's file by size and checksum, which the hub's record ``about`` contains."""
    if about.get("size") != path.stat().st_size:
        return False
    if not (large := about.get("lfs")):
        content = path.read_bytes()
        return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest() == about.get("blobId")
    with open(path, "rb") as file:
        return bool(hashlib.file_digest(file, "sha256").hexdigest() == large.get("sha256"))
