"""Pages of the gallery that are generated from the registries, for named parts that are not in a slot of a trainer.

Covered: agents, wrappers, dialects, problem families, verifiers, sandbox providers and engines; statuses of calls and
ends of episodes. Not covered: environments (``rstar2_env.evaluation.cards``) and the parts of trainers
(``part_pages``), whose pages are documents of the repository.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from rstar2_env.core.episode import ReplyEnd
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.status import ToolStatus
from rstar2_env.rollout.engines.registry import EngineKind

_PAPER = re.compile(r"arXiv[: ](\d{4}\.\d{4,5})")


@dataclass(frozen=True)
class Family:
    """A page of named parts.

    Attributes:
        file: Its name.
        title: Its heading.
        word: Singular noun for a part.
        about: Description of the parts, in Markdown, with links from a folder of the site below the top.
        registry: ``module:ATTRIBUTE`` of the registry.
    """

    file: str
    title: str
    word: str
    about: str
    registry: str

    def parts(self) -> Registry[Any]:
        """Return the registry."""
        module, _, name = self.registry.partition(":")
        found: Registry[Any] = getattr(importlib.import_module(module), name)
        return found


FAMILIES = (
    Family(
        "agents.md",
        "Agents",
        "Agent",
        "An agent turns what an environment shows into the next action. `rstar2 eval ID --agent NAME --set "
        "agent.OPTION=VALUE`, or `make_agent(name, **options)`. [Write an agent](../agents.md) says how they "
        "are used and written.",
        "rstar2_env.agents:AGENTS",
    ),
    Family(
        "wrappers.md",
        "Wrappers",
        "Wrapper",
        "A wrapper stands around an environment. `--wrap NAME:OPTION=VALUE`, or `make_env(id, wrappers=[...])`. "
        "[Wrappers and vector forms](../wrappers.md) says in which order they go. Reward components "
        "([gallery](../trainers/rewards.md)) are wrappers too.",
        "rstar2_env.wrappers.registry:WRAPPERS",
    ),
    Family(
        "dialects.md",
        "Dialects",
        "Dialect",
        "A dialect is how a model writes calls and answers as text, and how results are shown to it: "
        "`gym.make(id, dialect=NAME)`.",
        "rstar2_env.dialects.base:DIALECTS",
    ),
    Family(
        "problems.md",
        "Problem families",
        "Problem family",
        'A family generates problems: `problems="NAME:OPTION=VALUE"`. [Problems](../problems.md) lists the other '
        "sources.",
        "rstar2_env.problems.families:FAMILIES",
    ),
    Family(
        "verifiers.md",
        "Verifiers",
        "Verifier",
        'A verifier says whether an answer is the gold one: `verifier="NAME:OPTION=VALUE"`. '
        "[Its rules](../verification-rules.md) by example are those of the first.",
        "rstar2_env.verification.named:VERIFIERS",
    ),
    Family(
        "sandboxes.md",
        "Sandbox providers",
        "Sandbox provider",
        "Where programs run: `make_sandbox(NAME, **options)`. [The sandbox](../sandbox.md) says what each promises.",
        "rstar2_env.sandbox.providers:PROVIDERS",
    ),
    Family(
        "engines.md",
        "Engines",
        "Engine",
        "An engine turns token ids into token ids: `--set engine=NAME`. [Engines](../engines.md) compares them.",
        "rstar2_env.rollout:ENGINES",
    ),
)


def pages() -> dict[str, str]:
    """Return every page by its path in the site."""
    made = {f"gallery/{family.file}": _family(family) for family in FAMILIES}
    return {**made, "gallery/statuses.md": _statuses(), "gallery/ends.md": _ends()}


def _family(family: Family) -> str:
    registry = family.parts()
    rows, sections = [], []
    for name in registry.names():
        text, made_by = documented(name, registry.get(name))
        summary, _, rest = text.partition("\n")
        rows.append(f"| [`{name}`](#{_anchor(name)}) | {_cell(summary)} |")
        told, options = _read(rest)
        sections.append(f"## `{name}`\n\n{_prose(summary)}\n\n{_prose(told)}\n\n{_options(made_by, options)}")
    head = f"# {family.title}\n\n{family.about}\n\n| name | what it is |\n|---|---|\n"
    return head + "\n".join(rows) + "\n\n" + "\n".join(sections) + "\n"


_SANDBOXES = {
    "local": "rstar2_env.sandbox.local.provider:LocalSandbox",
    "docker": "rstar2_env.sandbox.docker.provider:DockerSandbox",
    "remote": "rstar2_env.sandbox.remote.provider:RemoteSandbox",
    "ray": "rstar2_env.sandbox.ray.provider:RaySandbox",
}
"""Classes that the registered provider functions create; the functions delay the import of these classes."""


def documented(name: str, part: Any) -> tuple[str, Any]:
    """Return the docstring of a part and its factory; a registered value may delay an import or refer to a class."""
    if isinstance(part, EngineKind):
        made_by = part.takes()
        summary = part.summary[0].upper() + part.summary[1:]
        rest = (inspect.getdoc(made_by) or "").partition("\n")[2]
        return f"{summary}.\n\n{part.determinism}\n{rest}", made_by
    if name in _SANDBOXES and not inspect.isclass(part):
        module, _, attribute = _SANDBOXES[name].partition(":")
        part = getattr(importlib.import_module(module), attribute)
    elif inspect.ismethod(part) and hasattr(part.__self__, "family_class"):
        return inspect.getdoc(part.__self__.family_class) or "", part.__self__.family_class
    return inspect.getdoc(part) or "", part


def _read(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the text before its sections and the meaning of each argument."""
    before, *sections = re.split(r"^(Args|Attributes|Raises|Returns|Yields):$", text, flags=re.MULTILINE)
    meanings: dict[str, str] = {}
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title in ("Args", "Attributes"):
            entries = re.split(r"^ {4}(\w+): ", body, flags=re.MULTILINE)
            meanings |= {one: " ".join(said.split()) for one, said in zip(entries[1::2], entries[2::2], strict=True)}
    return before.strip(), meanings


def _options(part: Any, meanings: dict[str, str]) -> str:
    try:
        parameters = inspect.signature(part).parameters.values()
    except (TypeError, ValueError):
        return ""
    rows = [
        f"| `{one.name}` | {_default(one)} | {_cell(meanings.get(one.name, ''))} |"
        for one in parameters
        if one.name not in ("self", "env") and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    return "| option | default | what it is |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def _default(one: inspect.Parameter) -> str:
    if one.default is one.empty:
        return "required"
    shown = repr(one.default)
    return f"`{shown}`" if " at 0x" not in shown and len(shown) < 60 else "see the code"


STATUS_CAUSES = dict.fromkeys((ToolStatus.OK, ToolStatus.EMPTY), "nobody") | {ToolStatus.UNAVAILABLE: "the system"}
"""Cause of each status; the policy, if a status is not listed."""

ENDS = {
    "answered": ("the environment", "a turn without a call, and an answer in it or in an earlier one", "yes"),
    "no_answer": ("the environment", "a turn without a call, and no answer anywhere", "yes"),
    "turns": ("the environment", "the last allowed turn contained a call, which is not run", "yes"),
    "tokens": ("the environment", "policy and tools together used up the budget of tokens", "yes"),
    "time": ("the environment", "the budget of seconds has passed", "yes"),
    "unavailable": ("the environment", "a tool or the grader was not available", "no: a failure of the system"),
    "cancelled": ("the rollout", "the group no longer needed the episode", "no"),
    "no_text": ("the endpoint", "the reply has no text", "no"),
    "cut": ("the endpoint", "the reply was cut at the limit of tokens", "no"),
    "refused": ("the endpoint", "the endpoint refused to answer", "no"),
    "terminated": ("another environment", "the environment ended the episode without a reason", "yes"),
    "truncated": ("another environment", "the environment cut the episode short without a reason", "yes"),
}
"""For each end of an episode: the part that sets it, the condition, and whether the episode counts in means."""


def _statuses() -> str:
    meanings = documented_members(Path(inspect.getfile(ToolStatus)), "ToolStatus")
    rows, sections = [], []
    for status in ToolStatus:
        meaning, who = meanings[status.name], STATUS_CAUSES.get(status, "the policy")
        error = "yes" if status.is_error else "no"
        rows.append([f"[`{status}`](#{_anchor(status)})", meaning, who, error])
        facts = {
            "Caused by": who,
            "Error of the policy": error,
            "Counts in shares of errors": "yes" if status.counts else "no",
        }
        sections.append(_section(status, meaning, facts, "status"))
    heads = ["status", "when", "who causes it", "an error of the policy"]
    told = (
        "A status is the result of a tool call. The part that observes the result sets the status; it is never found "
        "by searching text. The [end](ends.md) of an episode is the reason why it is over.\n\nA fault that a wrapper "
        "injected has `injected: true` next to its status and does not count as an error of the policy. `unavailable` "
        "is in neither part of a share of errors."
    )
    return "\n\n".join(["# Statuses of calls", told, table(heads, rows), *sections]) + "\n"


def _ends() -> str:
    missing = set(get_args(ReplyEnd)) - ENDS.keys()
    if missing:
        raise LookupError(f"gallery.ENDS lacks {', '.join(sorted(missing))}")
    rows = [[f"[`{end}`](#{_anchor(end)})", *facts] for end, facts in ENDS.items()]
    sections = [
        _section(end, f"{when[0].upper()}{when[1:]}.", {"Set by": who, "Counts in means": counts}, "end")
        for end, (who, when, counts) in ENDS.items()
    ]
    told = (
        "An end is the reason why an episode is over. [The contract of environments]"
        "(../environment-contract.md#how-an-episode-ends) has the flags that Gymnasium sees, and "
        "[statuses](statuses.md) are the results of its calls."
    )
    heads = ["end", "set by", "when", "counts in means"]
    return "\n\n".join(["# Ends of an episode", told, table(heads, rows), *sections]) + "\n"


def _section(name: str, meaning: str, facts: dict[str, str], field: str) -> str:
    """Return the section of a status or an end, with the metrics and the filter of its name."""
    return "\n".join(
        [
            f"## `{name}`\n\n{meaning}\n",
            *(f"- **{title}:** {said}." for title, said in facts.items()),
            f"- **Metrics:** [`rollout/{field}/{name}`](../metrics.md#rollout{field}name), also with `kept/` and "
            "`eval/`.",
            f"- **Its episodes in a run:** `rstar2 view RUN --text --filter {field}={name}`.",
        ]
    )


def documented_members(file: Path, name: str) -> dict[str, str]:
    """Return the text below each member of an enumeration in a source file."""
    tree = ast.parse(file.read_text("utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return {
        member.targets[0].id: " ".join(said.value.value.split())
        for member, said in itertools.pairwise(body)
        if isinstance(member, ast.Assign)
        and isinstance(member.targets[0], ast.Name)
        and isinstance(said, ast.Expr)
        and isinstance(said.value, ast.Constant)
    }


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Format a table in Markdown."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _prose(text: str) -> str:
    plain = re.sub(r"::$", ":", text.replace("``", "`"), flags=re.MULTILINE)
    return _PAPER.sub(lambda found: f"[arXiv {found[1]}](https://arxiv.org/abs/{found[1]})", plain)


def _cell(text: str) -> str:
    return _prose(" ".join(text.split())).replace("|", "\\|")


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "", name.lower())
