"""``rstar2 validate --tokens``: check that the tokens in training equal the tokens that were played."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import ChatTemplate, Json
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.rollout.token_checks.findings import Findings


def check_tokens_command(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="--tokens RUN|MODEL", help="Folder of a training run, or folder or hub name of a model."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="With RUN: the model whose tokenizer decodes the run's tokens [default: the run's own model]. "
            "Without RUN: the model to check.",
        ),
    ] = None,
    chat_template: ChatTemplate = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set an option of the chat template. Repeat the option to set several."
        ),
    ] = None,
    step: Annotated[
        list[int] | None,
        typer.Option(
            help="Training step whose tokens are checked. Repeat the option to check several steps [default: all]."
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the checks and the fault that each check detects, and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check the tokens of a training run (keep_tokens=true), or the tokenizer and chat template of a model.

    Every template is checked, including well-known ones. Exits with 1 if a finding is fatal.
    """
    import json
    from dataclasses import replace

    from rstar2_env.core.extras import needs_torch
    from rstar2_env.core.run_folder.layout import RUN_FILE
    from rstar2_env.models.folder import folder_of_gguf
    from rstar2_env.tools.cut import check_tokenizer

    subject, model = (subject, model) if subject is not None else (model, None)
    if subject is None and not list_:
        raise typer.BadParameter("Name the folder of a run or a model, or use --list to list the checks.")
    subject, model = folder_of_gguf(subject), folder_of_gguf(model)
    if subject is not None and not (Path(subject) / RUN_FILE).is_file() and Path(subject).suffix != ".jsonl":
        check_tokenizer(subject)  # check this first, because importing transformers takes seconds
    from rstar2_env.core.options.declare import parse_options, read_loosely
    from rstar2_env.rollout.token_checks.findings import ROW_CHECKS, TEMPLATE_CHECKS

    with needs_torch("A check of tokens"):
        from rstar2_env.rollout.token_checks.subject import Template, row_findings, run_of, template_of

    if list_:
        _list({"rows": ROW_CHECKS, "template": TEMPLATE_CHECKS})
        return
    assert subject is not None  # an error was raised above if it is missing
    run = run_of(subject)
    options = {name: read_loosely(value) for name, value in parse_options(set_ or (), flag="--set ").items()} or None
    if run is None:
        if step or model:
            raise typer.BadParameter(
                f"--step and --model apply only to the folder of a run, and {subject} is not the folder "
                "of a run: omit them, or give the folder of a run."
            )
        template: Template | None = Template(subject, chat_template, options)
    else:
        template = template_of(run)
        if model is not None:
            template = Template(model) if template is None else replace(template, path=model)
        if template is not None and (chat_template or options):
            template = replace(
                template,
                chat_template=chat_template or template.chat_template,
                chat_template_options=options or template.chat_template_options,
            )
    found = {} if run is None else {"rows": row_findings(run, template, steps=step)}
    if template is not None:
        found["template"] = template.findings()
    if as_json:
        say(json.dumps({"fit": _fit(found), **{part: _record(each) for part, each in found.items()}}))
    else:
        for part, each in found.items():
            _show(subject if part == "rows" or template is None else template.path, part, each)
    if not _fit(found):
        raise typer.Exit(1)


def _fit(found: dict[str, Findings]) -> bool:
    return all(each.fit for each in found.values())


def _record(found: Findings) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "fit": found.fit,
        "verdict": found.verdict,
        "looked_at": found.looked_at,
        "findings": [
            {
                "check": name,
                "severity": str(found.checks[name].severity),
                "what": found.checks[name].what,
                "count": found.counts[name],
                "examples": [asdict(example) for example in found.examples[name]],
            }
            for name in found.checks
            if name in found.counts
        ],
    }


def _show(subject: str, part: str, found: Findings) -> None:
    from rstar2_env.cli._tables import print_table, print_text

    scope = f"{found.looked_at} rows" if part == "rows" else "the tokenizer and its chat template"
    rows = [
        (name, str(check.severity), str(found.counts[name]), f"{check.what}{_examples(found, name)}")
        for name, check in found.checks.items()
        if name in found.counts
    ]
    if rows:
        print_table(("check", "severity", "count", "finding"), rows, title=f"{subject}: {scope}")
    print_text(f"{subject}, {scope}: {found.verdict}")


def _examples(found: Findings, name: str) -> str:
    examples = [
        f"{example.where}: {example.detail}" if example.detail else example.where for example in found.examples[name]
    ]
    return "".join(f"\n{example[:200]}" for example in examples)


def _list(checks: Any) -> None:
    from rstar2_env.cli._tables import print_table

    for part, part_checks in checks.items():
        rows = [(name, str(check.severity), check.what) for name, check in part_checks.items()]
        print_table(("check", "severity", "detects"), rows, title=f"checks of {part}")
