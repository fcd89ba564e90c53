"""The page of runs on the site: an export of recorded runs of ``rstar2 demo``, kept in ``docs/data/demo_runs``.

    python tools/docs_site/demo_page.py write FILE                    # the page, from the archives
    python tools/docs_site/demo_page.py record FOLDER [FOLDER ...]    # the archives, from demonstrations
    python tools/docs_site/demo_page.py draw                          # docs/learning.png, from the archives

``record`` takes each run of a folder of ``rstar2 demo`` and names its archive by its trainer and seed. An archive has
the metrics and events of all steps, but only a part of the episodes, so that it is small: those of the first and every
tenth step, and of the first and the last evaluation. Weights are left out, and so is the place of the folder on the
machine that made it. ``sources.json`` says how each run was made (``tools/results.py``).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rstar2_env.core.run_folder import read_run
from rstar2_env.view.built_page import FOLDER, INDEX
from rstar2_env.view.export.write import write_export

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from results import ARCHIVED, source

ARCHIVES = Path(__file__).resolve().parents[2] / "docs" / "data" / "demo_runs"
PICTURE = ARCHIVES.parents[1] / "learning.png"
EPISODES = 120
"""Number of episodes of each run on the page."""
NOTICE = "An example: runs of rstar2 demo, recorded with a part of their episodes."
"""Text of the page above each view."""

_TENTH = 10
_PLACE = "runs/demo"
"""Folder that replaces the demonstration's own in the recorded files: the default of ``rstar2 demo``."""


def record(demonstration: Path) -> list[Path]:
    """Write an archive of each trained run of a demonstration, and return the archives.

    Args:
        demonstration: The folder of a finished ``rstar2 demo``.
    """
    ARCHIVES.mkdir(exist_ok=True)
    held, written = ARCHIVES / ARCHIVED, []
    sources = json.loads(held.read_text("utf-8"))["archives"] if held.exists() else {}
    for result in sorted(demonstration.glob("*/verdict.json")):
        run = result.parent
        config = json.loads((run / "config.json").read_text("utf-8"))
        seed = config["run"]["seed"]
        name = f"{run.name.removeprefix('grpo_')}-{seed}"
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / name
            _copy(run, kept, str(demonstration.resolve()))
            written.append(ARCHIVES / f"{name}.tar.xz")
            with tarfile.open(written[-1], "w:xz", preset=9) as archive:
                for path in sorted(kept.rglob("*")):
                    if path.is_file():
                        _add(archive, f"{name}/{path.relative_to(kept)}", path.read_bytes())
        threads = f" --threads {config['run']['threads']}" if config["run"]["threads"] else ""
        sources[name] = source(f"rstar2 demo --trainer {config['trainer']} --seed {seed}{threads}")
    held.write_text(json.dumps({"archives": dict(sorted(sources.items()))}, indent=1) + "\n", "utf-8")
    return written


def _copy(run: Path, kept: Path, place: str) -> None:
    """Copy a run without weights and most episodes; ``place`` is the text to replace by ``_PLACE``."""
    left_out = shutil.ignore_patterns("checkpoint-*", "final", "best", "episodes")
    shutil.copytree(run, kept, ignore=left_out)
    for path in kept.iterdir():
        path.write_text(path.read_text("utf-8").replace(place, _PLACE), "utf-8")
    (kept / "episodes").mkdir()
    evaluations = sorted((run / "episodes").glob("eval-*"))
    steps = {path: int(path.name.split("-")[1].split(".")[0]) for path in (run / "episodes").glob("train-*")}
    trained = [path for path, step in steps.items() if step == 1 or step % _TENTH == 0]
    for path in {evaluations[0], evaluations[-1], *trained}:
        # Uncompressed, since the archive is compressed.
        (kept / "episodes" / path.stem).write_bytes(gzip.decompress(path.read_bytes()))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file whose entry depends on its name and content alone."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def unpack(out: Path) -> list[Path]:
    """Write the recorded runs as run folders below ``out``; return the folders, sorted by name."""
    for path in sorted(ARCHIVES.glob("*.tar.xz")):
        with tarfile.open(path) as archive:
            archive.extractall(out, filter="data")
    for path in list(out.glob("*/episodes/*.jsonl")):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
    return sorted(path for path in out.iterdir() if path.is_dir())


def write_page(out: Path) -> None:
    """Write the page of the recorded runs.

    Args:
        out: The file.
    """
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        runs.mkdir()
        unpack(runs)
        static = Path(shutil.copytree(FOLDER, Path(folder) / "static"))
        page = (static / INDEX).read_text("utf-8")
        notice = f'<aside class="notes" aria-label="Example"><p>{NOTICE}</p></aside>'
        (static / INDEX).write_text(page.replace("<body>", f"<body>{notice}"), "utf-8")
        write_export([runs], out, episodes=EPISODES, cache=Path(folder) / "cache", static=static, overwrite=True)


def drawn_from() -> str:
    """Return the digest of the archives, which the picture contains."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(ARCHIVES.glob("*.tar.xz")))).hexdigest()


def draw(out: Path) -> None:
    """Draw the learning curves of the recorded runs.

    Args:
        out: The file.
    """
    from rstar2_env.trainers.demonstration.run import TITLE
    from rstar2_env.trainers.record.plot import draw_runs

    histories = {}
    with tempfile.TemporaryDirectory() as folder:
        for run in unpack(Path(folder)):
            config = json.loads((run / "config.json").read_text("utf-8"))
            histories[f"{config['trainer']}, seed {config['run']['seed']}"] = read_run(run).metrics()
    plot = draw_runs(histories, title=TITLE)
    plot.figure.savefig(out, metadata={"Source": drawn_from()})


def main(words: Sequence[str]) -> None:
    """Run the command ``write FILE``, ``record FOLDER ...`` or ``draw``."""
    match list(words):
        case ["write", out]:
            write_page(Path(out))
        case ["record", *demonstrations] if demonstrations:
            for demonstration in demonstrations:
                for path in record(Path(demonstration)):
                    print(f"{path}: {path.stat().st_size:,} bytes")
        case ["draw"]:
            draw(PICTURE)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
