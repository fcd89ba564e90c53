"""Loads the data for token checks: a run's training rows and tokenizer, or a model's tokenizer and chat template."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import Run, read_run
from rstar2_env.core.run_folder.layout import RUN_FILE
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.token_checks.findings import ROW_CHECKS, TEMPLATE_CHECKS, Findings, TokenFinding
from rstar2_env.rollout.token_checks.rows import check_row
from rstar2_env.rollout.token_checks.template import check_template
from rstar2_env.tools.cut import make_tokenizer


@dataclass(frozen=True, slots=True)
class Template:
    """A model's tokenizer with its chat template, and facts about the model.

    Attributes:
        path: Folder of the model, or its name on the Hugging Face hub.
        chat_template: The chat template; ``None`` means the tokenizer's own.
        chat_template_options: Variables passed to the template.
    """

    path: str
    chat_template: str | None = None
    chat_template_options: Mapping[str, Any] | None = None

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer.

        Raises:
            ConfigurationError: There is no tokenizer of that name.
        """
        return make_tokenizer(self.path)

    @property
    def vocabulary(self) -> int | None:
        """Number of rows of the model's embedding; ``None`` if the model's configuration is not available."""
        config = self._json("config.json")
        size = config.get("vocab_size") or (config.get("text_config") or {}).get("vocab_size")
        return size if isinstance(size, int) else None

    @property
    def stops(self) -> list[int] | None:
        """Token ids at which the model's generation stops; ``None`` if they are not available."""
        found = self._json("generation_config.json").get("eos_token_id")
        return [found] if isinstance(found, int) else found

    def codec(self) -> ChatCodec:
        """Return the converter of conversations to token ids with this template.

        Raises:
            ConfigurationError: The template cannot be read.
        """
        options = dict(self.chat_template_options or {})
        return ChatCodec(self.tokenizer, chat_template=self.chat_template, chat_template_options=options)

    def findings(self) -> Findings:
        """Run the checks of the tokenizer and its template, and return their findings."""
        found = Findings(TEMPLATE_CHECKS)
        found.add(
            check_template(
                self.tokenizer,
                chat_template=self.chat_template,
                chat_template_options=self.chat_template_options,
                vocabulary=self.vocabulary,
                model_stops=self.stops,
            )
        )
        return found

    def _json(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads((Path(self.path) / name).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}


def run_of(written: str) -> Run | None:
    """Return the run at a path; ``None`` if the path names a model, such as one written by supervised fine-tuning."""
    path = Path(written)
    if not (path.is_file() or (path / RUN_FILE).is_file()):
        return None
    run = read_run(path)
    return None if run.kind == "sft" else run


def template_of(run: Run) -> Template | None:
    """Return the tokenizer and template of a run; ``None`` if its weights are not available."""
    options = run.config.get("model")
    model: Mapping[str, Any] = options if isinstance(options, Mapping) else {"path": options}
    saved = [str(run.path / name) for name, _ in sorted(run.weights.items(), key=lambda item: item[1])]
    candidates = [*reversed(saved), str(model.get("path") or "")]
    path = next((one for one in candidates if one and (Path(one) / "tokenizer_config.json").is_file()), None)
    if path is None:
        return None
    return Template(path, model.get("chat_template"), model.get("chat_template_options"))


def row_findings(run: Run, template: Template | None, *, steps: Sequence[int] | None = None) -> Findings:
    """Run the row checks on the rows that a run trained on, and return their findings.

    Args:
        run: Run whose rows to check.
        template: Tokenizer and template of the run, if known.
        steps: Steps to check; ``None`` means all.

    Raises:
        ConfigurationError: The run has no such step.
    """
    found = Findings(ROW_CHECKS)
    if steps is not None and (unknown := sorted(set(steps) - set(run.steps))):
        raise ConfigurationError(
            f"The run {run.path} does not have a training step {unknown[0]}; it has {_range(run.steps)}."
        )
    codec, vocabulary = None, None
    if template is not None:
        # If there is no codec, the checks of the template report the reason.
        with contextlib.suppress(ConfigurationError):
            codec = template.codec()
        vocabulary = template.vocabulary or len(template.tokenizer)
    looked = 0
    for step in run.steps if steps is None else steps:
        for findings in _of_step(run, step, codec, vocabulary):
            found.add(findings)
            looked += 1
    if not looked:
        found.add([TokenFinding("no_sampled_ids", str(run.path))])
    elif template is None:
        found.add([TokenFinding("no_tokenizer", str(run.path))])
    found.looked_at = looked
    return found


def _of_step(run: Run, step: int, codec: ChatCodec | None, vocabulary: int | None) -> Iterator[Iterator[TokenFinding]]:
    rows = run.tokens(step)
    if not rows:
        return
    episodes = {(entry.episode.group, entry.member): entry.episode for entry in run.episodes(step)}
    # If an episode trains as several rows, none of them contains the whole episode.
    times = Counter((row.group, row.member) for row in rows)
    for row in rows:
        place = row.group, row.member
        episode = episodes.get(place) if times[place] == 1 else None
        yield check_row(row, episode=episode, codec=codec, vocabulary=vocabulary)


def _range(steps: Sequence[int]) -> str:
    return f"{steps[0]} to {steps[-1]}" if steps else "none"
