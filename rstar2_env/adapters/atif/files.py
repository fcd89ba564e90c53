"""Export a run as a folder of trajectory files, and import trajectory files as episodes and traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.adapters.atif.nemo_gym import rollout_as_trajectory
from rstar2_env.adapters.atif.read import Imported, read_trajectory
from rstar2_env.adapters.atif.write import line_of, trajectory_of
from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.core.files.given_path import check_given
from rstar2_env.core.files.json_lines import add_line, begin_lines
from rstar2_env.core.files.outputs import begin_folder, check_file, check_folder, replacing
from rstar2_env.core.run_folder import EpisodeEntry, Run, TokensEntry, read_run
from rstar2_env.core.run_folder.layout import Split, episode_key
from rstar2_env.core.secret import hidden
from rstar2_env.traces.playing import episodes_file

FORMATS: Mapping[str, Callable[[Any], Imported]] = {
    "atif": read_trajectory,
    "nemo-gym": lambda row: read_trajectory(rollout_as_trajectory(row)),
}
"""For each format of trajectories, the function that converts a trajectory (parsed JSON) to an episode."""


def export_trajectories(run: str | Path, out: str | Path, *, overwrite: bool = False) -> int:
    """Write every episode of a run as a file ``KEY.json``; ``KEY`` is the episode's key in the viewer.

    Args:
        run: Folder of a run, or file of an evaluation.
        out: Output folder; it must not exist or must be empty. With ``overwrite`` it may also be an earlier output.
        overwrite: Replace an earlier output.

    Returns:
        The number of trajectories.

    Raises:
        ConfigurationError: There is no such run, it has no episodes, or ``out`` is neither new nor empty.
        RecordFormatError: A line of the run is not an episode.
    """
    folder, found = Path(out), read_run(run)
    check_folder(folder, "trajectories", resume=None, overwrite=overwrite, inputs=[str(run)])
    model = _model_of(found)
    count = 0
    for key, entry, tokens in _episodes(found):
        if not count:
            begin_folder(folder, "trajectories", "*.json")
        trajectory = trajectory_of(entry, key, tokens=tokens, model=model)
        with replacing(folder / f"{key}.json") as partial:
            partial.write_text(hidden(json.dumps(trajectory, allow_nan=False)) + "\n", "utf-8")
        count += 1
    if not count:
        raise ConfigurationError(
            f"The run {run} (of the kind {found.kind}) has no episodes to export: name a training run or an "
            "evaluation that has episodes."
        )
    return count


@dataclass(frozen=True, slots=True)
class ImportedFiles:
    """The files that an import wrote.

    Attributes:
        episodes: The file with all episodes.
        traces: The file with the traces for supervised fine-tuning (a cold start).
        counts: Number of episodes and of traces, by the keys ``episodes`` and ``traces``.
    """

    episodes: Path
    traces: Path
    counts: Mapping[str, int]


def import_trajectories(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    source: str = "atif",
    env: str = "rstar2/MathTool-v0",
    overwrite: bool = False,
) -> ImportedFiles:
    """Read trajectories, and write them as episodes and as traces for supervised fine-tuning (a cold start).

    All episodes are written as an evaluation, ``OUT.episodes.jsonl``. A trajectory becomes a trace in ``OUT.jsonl`` if
    its episode counts in means (``Episode.available``), at least one of its turns may be trained on, and the trajectory
    does not state that it failed. In a trace, turns that were copied from another trajectory, or that no model wrote,
    have ``"train": false``.

    Args:
        files: Files with one trajectory (``.json``) or one per line (``.jsonl``), or folders of such files.
        out: The JSONL file to which the traces are written.
        source: Format of the files, one of ``FORMATS``.
        env: Name of the environment to record for the episodes; environments named in the files are ignored.
        overwrite: Replace earlier files.

    Raises:
        ConfigurationError: A file cannot be read, or an output file cannot be written or must not be replaced.
        RecordFormatError: A trajectory is invalid; the message names file, line and field. Nothing is written.
    """
    if source not in FORMATS:
        raise ConfigurationError(f"The format {source!r} is unknown; expected one of {', '.join(FORMATS)}.")
    traces, episodes = Path(out), episodes_file(Path(out))
    for path in (traces, episodes):
        check_file(path, overwrite=overwrite, inputs=[str(file) for file in files], lines=True)
    found = [one for file in files for one in read_trajectories(file, FORMATS[source])]
    if not found:
        raise ConfigurationError(
            f"No file of trajectories (*.json, *.jsonl) was found in {', '.join(map(str, files))}."
        )
    run = {"env": env, "env_options": {}, "agent": source}
    count = 0
    with ExitStack() as stack:
        kept = stack.enter_context(begin_lines(traces, ()))
        lines = stack.enter_context(begin_lines(episodes, ()))
        for index, one in enumerate(found):
            tokens = {"tokens": [row.record() for row in one.tokens]} if one.tokens else {}
            add_line(lines, {**line_of(one.entry), "index": index, **tokens, "run": run})
            if (trace := _trace(one, count, source)) is not None:
                add_line(kept, trace)
                count += 1
    return ImportedFiles(episodes, traces, {"episodes": len(found), "traces": count})


def read_trajectories(path: str | Path, read: Callable[[Any], Imported] = read_trajectory) -> Iterator[Imported]:
    """Yield the trajectories of a file, or of all files in a folder, sorted by file name.

    Args:
        path: The file or the folder.
        read: Function that converts one trajectory, as parsed JSON.

    Raises:
        ConfigurationError: The file cannot be read.
        RecordFormatError: A trajectory is invalid; the message names file, line and field.
    """
    at = Path(path)
    check_given(at, "give a file of trajectories (.json, .jsonl), or a folder of such files")
    if at.is_dir():
        for file in sorted((*at.glob("*.json"), *at.glob("*.jsonl"))):
            if file.name != "manifest.jsonl":
                yield from read_trajectories(file, read)
        return
    try:
        data = at.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"The file {path} is not text in UTF-8: {error}.") from error
    except OSError as error:
        raise ConfigurationError(f"The file {path} cannot be read: {error}.") from error
    several = at.suffix != ".json"
    for number, text in enumerate(data.split("\n") if several else [data], 1):
        if several and not text.strip():
            continue
        place = f"{path}, line {number}" if several else str(path)
        try:
            yield read(json.loads(text, parse_constant=_refused))
        except RecordFormatError as error:
            raise RecordFormatError(f"{place}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise RecordFormatError(f"{place} is not valid JSON: {error}.") from error


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not a valid JSON number")


def _trace(one: Imported, index: int, source: str) -> dict[str, Any] | None:
    """Return the trace of a trajectory; ``None`` if it must not be trained on.

    Args:
        one: The imported trajectory.
        index: Index of the trace in the output file, from 0.
        source: Format of the trajectory, one of ``FORMATS``.
    """
    episode = one.entry.episode
    if not episode.available or not any(one.trained) or (one.graded and not episode.correct):
        return None
    trained = iter(one.trained)
    messages: list[dict[str, Any]] = []
    for message in episode.messages:
        context = message.role == "assistant" and not next(trained)
        messages.append({**message.record(), **({"train": False} if context else {})})
    while messages[-1]["role"] != "assistant":  # drop observations to which no turn replies
        messages.pop()
    return {
        "index": index,
        "problem_id": episode.problem_id,
        "messages": messages,
        "reward": episode.reward,
        "end": episode.end,
        "statuses": [str(status) for status in episode.statuses],
        "source": source,
    }


def _episodes(run: Run) -> Iterator[tuple[str, EpisodeEntry, list[TokensEntry]]]:
    steps: list[tuple[Split, int]] = [("train", step) for step in run.steps]
    for split, step in [*steps, *(("eval", step) for step in run.evaluated_steps)]:
        rows: dict[tuple[int, int], list[TokensEntry]] = {}
        for row in run.tokens(step) if split == "train" else ():
            rows.setdefault((row.group, row.member), []).append(row)
        for rank, line, entry in run.placed(step, split):
            imported = entry.more.get("tokens")
            tokens = [TokensEntry.from_record(row) for row in imported] if isinstance(imported, list) else None
            place = (entry.episode.group, entry.member)
            yield episode_key(split, step, line, rank), entry, rows.get(place, []) if tokens is None else tokens


def _model_of(run: Run) -> str | None:
    model = run.config.get("model")
    name = model.get("path") if isinstance(model, dict) else model
    return name if isinstance(name, str) and name else None
