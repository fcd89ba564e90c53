"""What the documents show is what happens."""

import contextlib
import dataclasses
import importlib
import io
import operator
import re

import pytest
from places import DOCS, ROOT


def block(text, language, number=0):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


def test_the_readmes_example_prints_what_it_says():
    text = (ROOT / "README.md").read_text()
    scope = {}
    exec(block(text, "python"), scope)
    try:
        shown = block(text, "text")
        for example in re.split(r"^>>> ", shown, flags=re.MULTILINE)[1:]:
            line, _, expected = example.partition("\n")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                value = eval(line, scope)
                if value is not None:
                    print(repr(value))
            assert out.getvalue().strip() == expected.strip(), line
    finally:
        scope["env"].close()


def test_the_readmes_own_environment_conforms(tmp_path, monkeypatch):
    import gymnasium as gym

    from rstar2_env.testing import check_text_env

    # In a module of its own: what is defined by exec cannot be pickled.
    (tmp_path / "capitals.py").write_text(block((ROOT / "README.md").read_text(), "python", 2))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("capitals")
    try:
        check_text_env("me/Capitals-v0")
    finally:
        del gym.registry["me/Capitals-v0"]


def test_the_readmes_sandbox_prints_the_answer(capsys):
    exec(block((ROOT / "README.md").read_text(), "python", 1), {})
    assert capsys.readouterr().out == "42\n"


def test_the_table_of_training_options_is_that_of_the_code():
    from rstar2_env.trainers.config import GROUPS
    from rstar2_env.trainers.options_table import BEGIN, with_table

    page = (DOCS / "training.md").read_text("utf-8")
    fresh = with_table(page)
    assert page == fresh, "run: python -m rstar2_env.trainers.options_table docs/training.md"
    names = [f"{group}.{field.name}" for group, record in GROUPS.items() for field in dataclasses.fields(record)]
    assert re.findall(r"^\| `(\w+\.\w+)` \|", fresh.partition(BEGIN)[2], re.MULTILINE) == names


def test_a_page_without_a_place_for_the_options_is_refused():
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.trainers.options_table import BEGIN, END, with_table

    with pytest.raises(ConfigurationError, match="has no place for the options"):
        with_table(f"{END}{BEGIN}")


@pytest.mark.parametrize("document", sorted(ROOT.glob("*.md")) + sorted(DOCS.rglob("*.md")), ids=lambda p: p.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target


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
