"""Programs see the named packages with their requirements, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, LocalSandbox
from rstar2_env.sandbox.inside.kernel.packages import hidden, required, shown, without
from rstar2_env.sandbox.packages import declared, installed

NAMES = "import os, sys\nsorted(os.listdir(sys.path[-1]))"
SEEN = """
import glob, importlib.util, os, sys
names = [n for n in ("pytest", "hypothesis", "torch", "transformers", "gymnasium", "rstar2_env", "_pytest", "pip")]
print([n for n in names if importlib.util.find_spec(n)])
roots = [path for path in (sys.prefix, sys.base_prefix, "/usr", "/usr/local") if os.path.isdir(path)]
found = [p for root in roots for p in glob.glob(root + "/lib/python3*/*-packages/*")]
found += [p for root in roots for p in glob.glob(root + "/lib*/python3*/ensurepip/_bundled/*")]
found += glob.glob("/usr/share/python-wheels/*")
print(sorted(found + glob.glob("/python/bin/pip*")))
"""


def install(
    folder: Path, name: str, files: dict[str, str], requires: tuple[str, ...] = (), version: str = "1.0"
) -> None:
    """Install a package into a folder, with the files that pip creates."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    lines = [f"Requires-Dist: {one}" for one in requires]
    files = {
        **files,
        f"{about}/METADATA": "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, ""]),
    }
    record = "".join(
        f"{path},,\n" for path in [*files, f"{about}/RECORD", "../../bin/tool", "__pycache__/x.pyc", "a.pth"]
    )
    for path, text in {**files, f"{about}/RECORD": record}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture
def site(tmp_path):
    """A folder with packages of several shapes."""
    folder = tmp_path / "site-packages"
    install(
        folder, "big", {"big/__init__.py": "", "big.libs/x.so": ""}, ("Small.One>=1; python_version > '3'", "missing")
    )
    install(folder, "small-one", {"small.py": "NAME = 'small'"}, ('extra-thing; extra == "all"', "big"))
    install(folder, "extra-thing", {"extra.py": ""})
    (folder / "bare").mkdir()
    return folder


class TestWhatIsShown:
    def test_a_package_comes_with_its_libraries_its_description_and_what_it_requires(self, site):
        found = shown(["big"], [str(site)])
        assert set(found) == {"big", "big.libs", "big-1.0.dist-info", "small.py", "small_one-1.0.dist-info"}
        assert found["small.py"] == str(site / "small.py")

    def test_packages_that_require_one_another_end(self, site):
        assert required(["big"], [str(site)]) == ["big", "Small.One", "missing"]

    def test_a_folder_without_a_description_is_shown_by_its_own_name(self, site):
        assert list(shown(["bare"], [str(site)])) == ["bare"]
        assert shown(["nowhere"], [str(site)]) == {}

    def test_the_first_folder_that_has_it_counts(self, site, tmp_path):
        other = tmp_path / "other"
        install(other, "small-one", {"small.py": ""})
        assert shown(["small-one"], [str(other), str(site)])["small.py"] == str(other / "small.py")

    def test_a_package_of_the_old_format_names_its_modules(self, tmp_path):
        egg = tmp_path / "old-1.0.egg-info"
        egg.mkdir()
        (egg / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: old\nVersion: 1.0\n")
        (egg / "top_level.txt").write_text("ancient\n")
        (tmp_path / "ancient.py").write_text("")
        assert list(shown(["old"], [str(tmp_path)])) == ["ancient.py"]

    def test_all_but_some_folders_is_all_the_others(self, tmp_path):
        for path in ("a/b/c", "a/b/d", "a/e"):
            (tmp_path / path).mkdir(parents=True)
        root = os.path.realpath(tmp_path)
        assert without(root, [f"{root}/a/b/c"]) == [f"{root}/a/b/d", f"{root}/a/e"]
        assert without(root, []) == [root]
        assert without(f"{root}/a", [f"{root}/a"]) == []

    def test_what_may_be_read_whatever_it_holds_is_not_hidden(self, site):
        assert str(site) in hidden([str(site)], [])
        assert str(site) not in hidden([str(site)], [str(site.parent)])


@pytest.mark.deadlines
class TestWhatAProgramSees:
    @pytest.mark.parametrize("layers", [(), ("mount",), ("mount", "user", "users", "pid", "net")], ids="-".join)
    def test_nothing_but_what_was_named_can_be_found(self, layers):
        with LocalSandbox(workers=1, preload=(), packages=("mpmath",), without=layers) as sandbox:
            outcome = sandbox.run(Job(SEEN))
            assert outcome.stdout == "[]\n[]\n", outcome
            assert sandbox.run(Job("import mpmath\nmpmath.mpf(2) ** 0.5")).status is ToolStatus.OK
            assert sandbox.run(Job("import sympy")).error_type == "ModuleNotFoundError"
            assert sandbox.run(Job("import importlib.metadata\nimportlib.metadata.version('mpmath')")).value[:2] == "'1"

    def test_sympy_brings_what_it_requires_and_what_is_preloaded_is_shown(self):
        with LocalSandbox(workers=1, packages=(), preload=("sympy",)) as sandbox:
            names = eval(str(sandbox.run(Job(NAMES)).value))
            assert {"sympy", "mpmath"} <= set(names)
            assert "numpy" not in names

    def test_all_of_it_can_be_asked_for(self):
        with LocalSandbox(workers=1, preload=(), packages=("*",)) as sandbox:
            assert sandbox.run(Job("import pytest")).status is ToolStatus.EMPTY


class TestWhatThePolicyIsTold:
    def test_a_local_sandbox_declares_its_packages_and_others_do_not(self):
        assert declared("local")[:2] == ("numpy", "sympy")
        assert declared({"provider": "local", "packages": ["sympy"]}) == ("sympy",)
        assert declared({"provider": "local", "packages": ["*"]}) is None
        assert declared({"provider": "docker"}) is None

    def test_only_what_is_installed_is_named(self):
        assert installed(("numpy", "no-such-package", "sympy")) == ("numpy", "sympy")
