"""The reference has a place for every name that a guide teaches."""

import importlib
import re

import pytest
import reference
import taught

PAGES = reference.pages()
DOCUMENTED = [path for text in PAGES.values() for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE)]
PUBLIC = {package.module for package in reference.PACKAGES}


def test_every_name_that_a_guide_imports_has_a_place():
    found = taught.taught()
    assert len(found) > 60
    assert {"rstar2_env", "rstar2_env.rollout", "rstar2_env.view.server"} <= {one.module for one in found}
    lost = [
        one
        for one in found
        if not (
            one.name in importlib.import_module(one.module).__all__
            if one.module in PUBLIC
            else taught.defined(one.module, one.name) in DOCUMENTED
        )
    ]
    assert lost == []


def test_a_package_that_says_what_is_public_is_a_page_of_its_own():
    imported = {one.module for one in taught.taught()} - PUBLIC
    files = {module: taught.file_of(module) for module in imported}
    assert {
        module for module, file in files.items() if file.name == "__init__.py" and "__all__" in file.read_text()
    } == set()


@pytest.mark.parametrize(
    "path",
    [
        "rstar2_env.view.server.serving.ViewServer",
        "rstar2_env.evaluation.comparison.compare.compare",
        "rstar2_env.traces.writer.generate_traces",
        "rstar2_env.adapters.smolagents.env_tools",
        "rstar2_env.adapters.skyrl.register",
    ],
)
def test_names_of_every_kind_of_module_are_there(path):
    assert path in DOCUMENTED


def test_no_name_is_documented_twice():
    assert sorted({path for path in DOCUMENTED if DOCUMENTED.count(path) > 1}) == []


def test_a_name_that_is_nowhere_is_an_error():
    with pytest.raises(LookupError, match=r"imports Nothing from rstar2_env\.core\.options"):
        taught.defined("rstar2_env.core.options.declare", "Nothing")


def test_the_search_ranks_documents_above_names():
    ranked = {place for place, text in PAGES.items() if text.startswith("---\nsearch:\n  boost: 0.3\n---\n# ")}
    assert ranked == PAGES.keys() - {"reference/commands.md"}
