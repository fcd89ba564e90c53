"""Every error of the package leads to a section of docs/troubleshooting.md, and says so below its message."""

import ast
import importlib
import pickle
import re
import sys

import pytest
from places import DOCS, ROOT

from rstar2_env.core import errors
from rstar2_env.core.command.error_pages import _SECTIONS, section_of
from rstar2_env.core.errors import ConfigurationError, MissingExtraError, Rstar2Error, UnknownEnvError

PAGE = (DOCS / "troubleshooting.md").read_text("utf-8")
ANCHORS = {title.lower().replace(" ", "-") for title in re.findall(r"^## (.+)$", PAGE, re.MULTILINE)}
FOLDERS = {
    "rstar2_env": "rstar2_env",
    **{name: f"rstar2_env.{name}" for name in ("agents", "envs_registry", "trainers")},
}


def modules_that_raise(name):
    """Modules of the package whose code makes an error of that name."""
    for folder, package in FOLDERS.items():
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    inside = file.relative_to(ROOT / folder).with_suffix("").as_posix().replace("/", ".")
                    yield f"{package}.{inside}".removesuffix(".__init__")
                    break


def test_every_module_that_refuses_options_has_its_section():
    found = {module: section_of(module) for module in modules_that_raise("ConfigurationError")}
    assert len(found) > 200
    assert {module: section for module, section in found.items() if section not in ANCHORS} == {}


def test_every_section_that_is_named_is_there_and_no_module_is_named_in_vain():
    classes = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, Rstar2Error)]
    assert {found.section for found in classes} - {""} <= ANCHORS
    assert set(_SECTIONS.values()) <= ANCHORS
    # A file of a plugin's folder is found through its package: no extra of it needs to be installed.
    assert [module for module in _SECTIONS if not _exists(module)] == []


def _exists(module):
    folder = next(
        (f for f, package in FOLDERS.items() if f != "rstar2_env" and module.startswith(package)), "rstar2_env"
    )
    path = ROOT / folder / module.removeprefix(FOLDERS[folder]).strip(".").replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


@pytest.mark.parametrize(
    ("module", "section"),
    [
        ("rstar2_env.trainers.backends.trl.sharding.fsdp2", "sharding"),
        ("rstar2_env.trainers.step.selection", "parts"),
        ("rstar2_env.core.model_name", "models"),
        ("rstar2_env.trainers.backends.trl.run.run", "training"),
        ("rstar2_env.core.options.declare", "options"),
        ("rstar2_env", "options"),
        ("rstar2_environment", ""),
        ("somebody.elses", ""),
    ],
)
def test_a_module_has_the_section_of_the_nearest_package(module, section):
    assert section_of(module) == section


def test_an_error_says_below_its_message_where_to_read_on():
    from rstar2_env import make_sandbox

    with pytest.raises(ConfigurationError) as caught:
        make_sandbox("local", wall=1)
    assert caught.value.__notes__ == ["docs: rstar2 help troubleshooting#options"]
    assert "troubleshooting" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.__notes__ == caught.value.__notes__


def test_an_error_of_options_belongs_to_what_refused_them():
    launch = importlib.import_module("rstar2_env.trainers.launch.devices")
    with pytest.raises(ConfigurationError) as caught:
        launch.read_devices("x")
    assert caught.value.__notes__ == ["docs: rstar2 help troubleshooting#launch"]


def test_an_error_of_an_object_that_is_being_made_belongs_to_its_module():
    from rstar2_env.problems.decontaminate import Benchmarks

    with pytest.raises(ConfigurationError) as caught:
        Benchmarks({})
    assert caught.value.__notes__ == ["docs: rstar2 help troubleshooting#problems"]


def test_classes_of_one_mistake_have_a_section_of_their_own_wherever_they_are_raised():
    assert MissingExtraError("ray", "A cluster").__notes__ == ["docs: rstar2 help troubleshooting#missing-extra"]
    assert UnknownEnvError("environment", "x", ["y"]).__notes__ == ["docs: rstar2 help troubleshooting#unknown-name"]


def test_an_error_that_another_package_raises_leads_nowhere():
    assert not hasattr(ConfigurationError("Theirs."), "__notes__")
    assert sys.modules[__name__].__name__.partition(".")[0] != "rstar2_env"
