"""An environment of Harbor in a folder of this machine: paths such as ``/app`` in commands and files lead into it.

For tests of tasks with Harbor's own trials, which otherwise need containers.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult

_INSIDE = re.compile(r"(?<![\w./-])/(app|tests|solution|logs|installed-agent)(?![\w-])")


class FolderEnvironment(BaseEnvironment):
    """Runs commands with bash in a folder.

    Args:
        folder: The folder.
        files: Files of the image: paths inside, and the files on this machine.
    """

    def __init__(self, *args: Any, folder: str, files: dict[str, str] | None = None, **kwargs: Any) -> None:
        self._folder, self._image = Path(folder), dict(files or {})
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "folder"

    def _validate_definition(self) -> None:
        pass

    def _outside(self, text: str) -> str:
        return _INSIDE.sub(rf"{self._folder}/\1", text)

    async def start(self, force_build: bool) -> None:
        for name in ("app", "tests", "solution", "logs/agent", "logs/verifier", "logs/artifacts"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        for inside, path in self._image.items():
            await self.upload_file(path, inside)

    async def stop(self, delete: bool) -> None:
        pass

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = Path(self._outside(target_path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self._outside(Path(source_path).read_text()))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        for path in sorted(Path(source_dir).rglob("*")):
            if path.is_file():
                await self.upload_file(path, f"{target_dir}/{path.relative_to(source_dir).as_posix()}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._outside(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._outside(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        variables = {
            **os.environ,
            **(env or {}),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            self._outside(command),
            cwd=self._outside(cwd or "/app"),
            env=variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(done.communicate(), timeout_sec or 300)
        return ExecResult(stdout=said.decode(errors="replace"), stderr="", return_code=done.returncode or 0)
