"""What the documents show is what happens."""

import contextlib
import importlib
import io
import operator
import re
import shlex
import subprocess
import sys

import pytest
from places import DOCS, ROOT


def block(text, language, number=0):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


PAIRS = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md"])
def test_an_example_prints_what_the_page_says(page):
    ran = 0
    for code, shown in PAIRS.findall((ROOT / page).read_text()):
        if "register_env(" in code:
            continue
        out, scope = io.StringIO(), {}
        with contextlib.redirect_stdout(out):
            exec(code, scope)
        if "env" in scope:
            scope["env"].close()
        assert out.getvalue().strip() == shown.strip(), code
        ran += 1
    assert ran


def test_the_first_environment_of_ones_own_conforms(tmp_path, monkeypatch):
    import gymnasium as gym

    from rstar2_env.testing import check_text_env

    # In a module of its own: what is defined by exec cannot be pickled.
    (tmp_path / "capitals.py").write_text(block((DOCS / "getting-started.md").read_text(), "python", 2))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("capitals")
    try:
        check_text_env("me/Capitals-v0")
    finally:
        del gym.registry["me/Capitals-v0"]


@pytest.mark.slow
def test_the_first_commands_do_what_the_page_says(tmp_path):
    page = (DOCS / "getting-started.md").read_text()
    (tmp_path / "capitals.py").write_text(block(page, "python", 2))
    commands = [line for line in block(page, "sh", 1).splitlines() + block(page, "sh", 2).splitlines() if line]
    assert [line.split()[1] for line in commands] == ["list", "eval", "play", "validate", "eval"]
    for line in commands:
        if " play " in line:
            continue
        done = subprocess.run(
            [sys.executable, "-m", "rstar2_env.cli", *shlex.split(line)[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, line + done.stdout + done.stderr
        assert {"eval": "100.00", "validate": "all checks passed"}.get(line.split()[1], "MathTool") in done.stdout


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    code = block(text, "python")
    assert (text.count("\n!["), len(re.findall(r"^\|---", text, re.MULTILINE)), text.count("```python")) == (2, 1, 1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    assert len(re.findall(r"^- \[", text, re.MULTILINE)) == 4, "four links lead on"
    assert len(text.splitlines()) <= 70


def test_the_citation_is_of_this_version():
    import yaml

    from rstar2_env import __version__

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["version"], cited["title"]) == (__version__, "rstar2-env")
    assert [one["name"] for one in cited["authors"]] == ["The rstar2-env maintainers"]
    assert "2508.20722" in cited["references"][0]["url"]


def test_the_changelog_has_a_date_for_this_version_only_if_the_citation_has_it():
    import yaml

    from rstar2_env import __version__

    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(r"^## (\d\S+) \((Unreleased|\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)
    assert found[1] == __version__
    released = yaml.safe_load((ROOT / "CITATION.cff").read_text()).get("date-released", "Unreleased")
    assert str(released) == found[2]
    unreleased = re.search(rf"^{re.escape(__version__)}\b.* is unreleased\.", text, re.MULTILINE)
    assert bool(unreleased) == (found[2] == "Unreleased")


def test_the_workflow_runs_what_ci_runs():
    import yaml

    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert [step["run"] for job in jobs.values() for step in job["steps"] if ".ci/run" in step.get("run", "")] == [
        ".ci/run"
    ]


def test_the_recipe_that_contributors_are_shown_is_a_trainer():
    from rstar2_env.trainers import TRAINERS

    try:
        exec(block((ROOT / "CONTRIBUTING.md").read_text(), "python"), {"__package__": "rstar2_env.trainers.recipes"})
        config = TRAINERS.get("grpo_turns").configure({"model": "m"})
    finally:
        TRAINERS._parts.pop("grpo_turns", None)
    assert (config.parts.loss[0].options["level"], config.parts.aggregation.name) == ("turn", "prompt_mean")


def leads_somewhere(name):
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("rstar2_env"):
                return True  # a module whose extra is not installed
            continue
        except ImportError:
            return True
        try:
            operator.attrgetter(".".join(parts[count:]))(found) if parts[count:] else found
        except AttributeError:
            return False
        return True
    return False


@pytest.mark.slow
def test_every_dotted_name_in_code_and_documents_leads_somewhere():
    folders = ("rstar2_env", "agents", "envs_registry", "trainers", "docs", "benchmarks")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md")]
    texts = {path: path.read_text() for path in [*files, *ROOT.glob("*.md")]}
    groups = {
        name
        for text in texts.values()
        for name in re.findall(r'(?:GROUP = |entry_points=|, |^ +)"(rstar2_env\.\w+)"', text, re.MULTILINE)
    }
    named = {
        name: path for path, text in texts.items() for name in re.findall(r"\brstar2_env(?:\.[A-Za-z_]\w*)+", text)
    }
    assert len(named) > 300
    assert {name: path for name, path in named.items() if name not in groups and not leads_somewhere(name)} == {}
