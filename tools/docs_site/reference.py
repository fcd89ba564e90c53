"""Generate the reference: the public names, which mkdocstrings documents, and the help of the command line.

Covered: what ``rstar2_env`` and its public packages export, each where it is defined; other names that guides import;
every subcommand of ``rstar2``.
Not covered: parts that are called by name (``gallery``).
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gallery import table
from taught import defined, taught

_OURS = "rstar2_env."
_BELOW_DOCUMENTS = "---\nsearch:\n  boost: 0.3\n---\n"
"""Front matter of a page of names: the search ranks documents above it, although it often repeats their words."""


@dataclass(frozen=True)
class Package:
    """A page of the reference.

    Attributes:
        file: Its name.
        module: The package whose ``__all__`` it documents.
        title: Its heading.
        about: Purpose of the package.
    """

    file: str
    module: str
    title: str
    about: str


PACKAGES = (
    Package("index.md", "rstar2_env", "rstar2_env", "The public interface, which most programs import from here."),
    Package("trainers.md", "rstar2_env.trainers", "rstar2_env.trainers", "Trainers by name, and what their parts see."),
    Package("testing.md", "rstar2_env.testing", "rstar2_env.testing", "What authors of parts test with."),
    Package("agents.md", "rstar2_env.agents", "rstar2_env.agents", "Agents, by name and by type."),
    Package("wrappers.md", "rstar2_env.wrappers", "rstar2_env.wrappers", "Wrappers, and `make_env`."),
    Package("tools.md", "rstar2_env.tools", "rstar2_env.tools", "Tools, their chain, and results."),
    Package("problems.md", "rstar2_env.problems", "rstar2_env.problems", "Problems and where they come from."),
    Package("sandbox.md", "rstar2_env.sandbox", "rstar2_env.sandbox", "Jobs, outcomes, and providers."),
    Package("verification.md", "rstar2_env.verification", "rstar2_env.verification", "Is this the gold answer?"),
    Package("rewards.md", "rstar2_env.rewards", "rstar2_env.rewards", "What a reward component is given and returns."),
    Package("rollout.md", "rstar2_env.rollout", "rstar2_env.rollout", "Engines, and the tool loop of a policy."),
    Package(
        "audit.md",
        "rstar2_env.evaluation.audit",
        "rstar2_env.evaluation.audit",
        "Audits of graders, and their reports.",
    ),
    Package("diagnosis.md", "rstar2_env.diagnosis", "rstar2_env.diagnosis", "Diagnoses of runs, and their findings."),
    Package(
        "telemetry.md",
        "rstar2_env.core.telemetry",
        "rstar2_env.core.telemetry",
        "Spans and metrics of runs, by OpenTelemetry.",
    ),
    Package("search.md", "rstar2_env.search", "rstar2_env.search", "Beam, depth-first and Monte-Carlo tree search."),
    Package(
        "view.md", "rstar2_env.view.server", "rstar2_env.view.server", "The server of `rstar2 view`, in a program."
    ),
)


def pages() -> dict[str, str]:
    """Return every page by its path in the site."""
    seen: dict[str, str] = {}
    made = {f"reference/{package.file}": _page(package, seen) for package in PACKAGES}
    return {**made, "reference/guides.md": _guides(seen), "reference/commands.md": _commands()}


def links(folder: Path, root: Path) -> None:
    """Create a package of links to the source files, with the layout of an installation."""
    for name in ("rstar2_env", "agents", "envs_registry", "trainers"):
        target = folder / "rstar2_env" / ("" if name == "rstar2_env" else name)
        for file in (root / name).rglob("*.py"):
            place = target / file.relative_to(root / name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file)


def _page(package: Package, seen: dict[str, str]) -> str:
    module = importlib.import_module(package.module)
    documented, elsewhere, registered = [], [], []
    for name in sorted(set(module.__all__) - {"__version__"}, key=str.lower):
        found = getattr(module, name)
        path = _path(found)
        if inspect.ismethod(found):
            registered.append([f"`{name}(name, part)`", f"a {found.__self__.kind}"])
        elif path is None:
            elsewhere.append([f"`{name}`", _kind(found)])
        elif path in seen:
            elsewhere.append([f"`{name}`", f"[see {seen[path]}]({seen[path]}#{path})"])
        else:
            seen[path] = package.file
            documented.append(f"::: {path}")
    parts = [f"{_BELOW_DOCUMENTS}# `{package.title}`", package.about, *documented]
    if registered:
        parts += [
            "## Functions that register",
            "Each takes a name and a part, or a name alone as a decorator, and refuses a name that another part has. "
            "[What to touch to add a part](../architecture.md#what-to-touch-to-add-a-part) lists them all.",
            table(["function", "registers"], registered),
        ]
    if elsewhere:
        parts += ["## Further names", table(["name", "what it is"], elsewhere)]
    return "\n\n".join(parts) + "\n"


def _guides(seen: dict[str, str]) -> str:
    """Return the names that guides import and that no other page documents."""
    public = {package.module for package in PACKAGES}
    shown: dict[str, set[str]] = {}
    for one in taught():
        if one.module not in public and (path := defined(one.module, one.name)) not in seen:
            shown.setdefault(path, set()).add(one.page)
    parts = [
        f"{_BELOW_DOCUMENTS}# What guides import",
        "Names that a guide imports from below the public packages, and the guide.",
    ]
    for path, pages in shown.items():
        links = ", ".join(f"[{page.removesuffix('.md')}](../{page})" for page in sorted(pages))
        parts += [f"::: {path}", f"Shown in {links}."]
        seen[path] = "guides.md"
    return "\n\n".join(parts) + "\n"


def _path(found: Any) -> str | None:
    """Return the place where a class or a function is defined; ``None`` for other objects."""
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        return None
    module = str(found.__module__)
    return f"{module}.{found.__qualname__}" if module.startswith(_OURS) and "<" not in found.__qualname__ else None


def _kind(found: Any) -> str:
    kind = getattr(found, "kind", None)
    if isinstance(kind, str):
        return f"the registry of each {kind}"
    return f"`{type(found).__name__}`"


def _commands() -> str:
    import typer

    from rstar2_env.cli import COMMANDS, build
    from rstar2_env.cli._calls import FORM_EXAMPLES, FORMS

    parts = ["# The command `rstar2`", "Made from the command line itself: `rstar2 COMMAND --help` says the same."]
    rows = [[f"[`{name}`](#rstar2-{name})", line] for name, (line, _) in COMMANDS.items()]
    parts.append(table(["command", "what it does"], rows))
    for name, (line, example) in COMMANDS.items():
        whole: Any = typer.main.get_command(build([name]))
        command = whole.commands[name]
        parts += [f"## `rstar2 {name}`"]
        if hasattr(command, "commands"):
            parts.append(line)
            for below, one in command.commands.items():
                parts += [f"### `rstar2 {name} {below}`", *_command(one, "")]
        else:
            parts += _command(command, example)
        for flags, form in FORMS.get(name, {}).items():
            if form != name:
                form_command: Any = typer.main.get_command(build([name, *flags]))
                parts += [f"### `rstar2 {name} {' '.join(flags)}`"]
                parts += _command(form_command.commands[name], FORM_EXAMPLES[form])
    return "\n\n".join(parts) + "\n"


def _command(command: Any, example: str) -> list[str]:
    told = [inspect.cleandoc(command.help or command.short_help or "")]
    if example:
        told.append(f"```sh\n{example}\n```")
    rows = []
    for one in command.params:
        if getattr(one, "hidden", False) or one.name == "help":
            continue
        names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
        if one.param_type_name == "argument":
            names = f"`{one.metavar or (one.name or '').upper()}`"
        rows.append([names, " ".join((getattr(one, "help", "") or "").split()).replace("|", "\\|")])
    return [*told, table(["argument", "what it is"], rows)] if rows else told
