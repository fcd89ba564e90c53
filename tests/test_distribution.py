"""The wheel and the source distribution hold one package, the four folders in it; type checkers see its public face."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path
from urllib.request import urlopen

import pytest
from made_runs import write_training
from places import ROOT

import rstar2_env
from rstar2_env import read_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a type checker reads the whole package

USE = """
import gymnasium as gym, rstar2_env, rstar2_env.agents, rstar2_env.trainers
env = gym.make("rstar2/MathTool-v0")
env.reset(seed=0)
print(rstar2_env.__file__, *rstar2_env.trainers.TRAINERS.names(), *rstar2_env.agents.AGENTS.names())
"""
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "RSTAR2"))}
"""An environment in which no package of this checkout is found."""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A source distribution of this checkout, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    return folder


def test_an_installed_wheel_works_away_from_the_checkout(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert (tmp_path / "rstar2_env" / "py.typed").exists()
    assert (tmp_path / "rstar2_env" / "docs" / "troubleshooting.md").exists()
    assert {path.name for path in tmp_path.iterdir() if path.is_dir() and "dist-info" not in path.name} == {
        "rstar2_env"
    }
    printed = run(sys.executable, "-c", USE, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}).split()
    assert Path(printed[0]).is_relative_to(tmp_path)
    assert {"grpo", "grpo_roc", "oracle"} <= set(printed[1:])


@pytest.fixture(scope="module")
def base(built, tmp_path_factory):
    """The folder of the programs of a new environment with the wheel and what the wheel needs, without any extra."""
    (wheel,) = built.glob("*.whl")
    folder = tmp_path_factory.mktemp("base")
    run(sys.executable, "-m", "venv", str(folder))
    run(str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", str(wheel), env=CLEAN)
    return folder / "bin"


def test_the_python_of_readme_prints_in_a_clean_environment_what_readme_says(base, tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.DOTALL).groups()
    (tmp_path / "example.py").write_text(code)
    assert run(str(base / "python"), "example.py", cwd=tmp_path, env={**CLEAN, "HOME": str(tmp_path)}) == shown


def test_the_first_commands_run_with_the_base_dependencies_alone(base, tmp_path):
    home = {**CLEAN, "HOME": str(tmp_path)}
    absent = "import importlib.util as u; print([name for name in ('torch', 'trl', 'yaml') if u.find_spec(name)])"
    assert run(str(base / "python"), "-c", absent, cwd=tmp_path, env=home) == "[]\n"
    assert "rstar2/MathTool-v0" in run(str(base / "rstar2"), "list", "envs", cwd=tmp_path, env=home)
    command = (str(base / "rstar2"), "eval", "rstar2/MathTool-v0", "--agent", "oracle", "-n", "4")
    assert "100.00" in run(*command, cwd=tmp_path, env=home)


def test_without_extras_a_command_says_which_extra_it_needs(base, tmp_path):
    command = [str(base / "rstar2"), "train", "grpo", "--model", "any"]
    done = subprocess.run(command, cwd=tmp_path, env={**CLEAN, "HOME": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode != 0
    assert "rstar2-env[train]" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_wheel_has_the_page_of_the_viewer_and_not_what_it_is_built_of(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("rstar2_env/view/")}
    assert not {name for name in inside if name.startswith("rstar2_env/view/web")}
    if not (ROOT / "rstar2_env" / "view" / "static" / "index.html").exists():
        pytest.skip("the page is not built: run `make view`, which needs Node")
    assert {
        f"rstar2_env/view/static/{name}" for name in ("index.html", "app.js", "text.js", "app.css", "icon.svg")
    } <= inside


def test_an_installed_wheel_serves_the_page_of_the_viewer(built, tmp_path):
    if not (ROOT / "rstar2_env" / "view" / "static" / "index.html").exists():
        pytest.skip("the page is not built: run `make view`, which needs Node")
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    write_training(tmp_path / "run", steps=1, problems=4)
    clean = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "COLUMNS": "200", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "rstar2_env.cli", "view", "run", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, cwd=tmp_path, env=clean, stderr=subprocess.PIPE, text=True) as server:
        try:
            said = next(link for line in server.stderr if (link := re.search(r"http://127\.0\.0\.1:\d+/", line)))
            for name in ("", "app.js", "text.js", "app.css", "icon.svg"):
                with urlopen(said[0] + name) as answer, zipfile.ZipFile(wheel) as archive:
                    held = archive.read(f"rstar2_env/view/static/{name or 'index.html'}")
                    assert answer.read() == held, name
            with urlopen(f"{said[0]}api/runs") as answer:
                assert [row["run"] for row in json.load(answer)["runs"]] == ["run"]
        finally:
            server.terminate()


def test_a_package_index_gets_readme_without_relative_links(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        about, _, text = archive.read(name).decode().partition("\n\n")
    assert "Description-Content-Type: text/markdown" in about
    assert text.startswith("# rstar2-env\n")
    assert "import rstar2_env" in text
    assert [target for target in re.findall(r"\]\(([^)]*)\)", text) if not target.startswith("https://")] == []


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_the_demonstration_runs_from_a_wheel_in_a_clean_environment(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    own = tmp_path / "venv" / "bin"
    pip = (str(own / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    # torch first and on its own, as the Makefile does: pip would choose a build of its own.
    run(*pip, f"torch=={version('torch').partition('+')[0]}")
    run(*pip, f"{wheel}[train]")
    said = run(
        str(own / "rstar2"), "demo", "--steps", "2", "--sft-steps", "40", "--out", "demo", cwd=tmp_path, env=CLEAN
    )
    assert "pass@1" in said
    assert read_run(tmp_path / "demo" / "grpo_roc").finished
    # The last line names the command that shows the run, and the extra has what the command needs.
    assert " ".join(said.split()).endswith("To see the episodes: rstar2 view demo/grpo_roc")
    run(str(own / "python"), "-c", "import starlette, textual, uvicorn", env=CLEAN)


def test_a_folder_imported_under_its_bare_name_says_what_to_do():
    done = subprocess.run(
        [sys.executable, "-c", "import trainers"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "import rstar2_env.trainers" in done.stderr


FACE = ROOT / "tests" / "support" / "uses_the_face.py"
REVEALED = {
    number: line.split("#")[1].strip()
    for number, line in enumerate(FACE.read_text().splitlines(), 1)
    if "reveal_type(" in line and "#" in line
}
"""The type that is to be seen on each line of the program."""


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A folder away from the checkout, with the program and, in ``site``, the installed wheel."""
    folder = tmp_path_factory.mktemp("installed")
    (wheel,) = built.glob("*.whl")
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
        "--target",
        str(folder / "site"),
        str(wheel),
    )
    shutil.copy(FACE, folder / "program.py")
    return folder


WRONG = """from rstar2_env import ToolEnv, ToolEnvironment, trainers
ToolEnv(max_turns='a')
trainers.make("grpo", modle="PATH")
trainers.make("grpo", model="PATH", steps="many")
trainers.sft([], model="PATH", learning_rat=1e-5)
"""


def mypy(folder):
    """What mypy finds in the programs of a folder: (program, line, kind, text)."""
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"),
        *("--cache-dir", str(folder / "cache"), "program.py", "wrong.py"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "MYPYPATH": "site"})
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [re.fullmatch(r"(\w+)\.py:(\d+): (note|error): (.*)", line) for line in done.stdout.splitlines()]
    return [(each[1], int(each[2]), each[3], each[4]) for each in found if each is not None]


def pyright(folder, site="site"):
    """What pyright finds in them, likewise; ``site`` is the folder of the package."""
    settings = {
        "include": ["program.py", "wrong.py"],
        "extraPaths": [site],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportMissingTypeStubs": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    kinds = {"information": "note", "warning": "error"}
    return [
        (Path(each["file"]).stem, each["range"]["start"]["line"] + 1, kind, each["message"])
        for each in json.loads(done.stdout)["generalDiagnostics"]
        for kind in [kinds.get(each["severity"], each["severity"])]
    ]


@pytest.fixture(
    scope="module",
    params=[pytest.param(mypy, id="mypy", marks=pytest.mark.proof), pytest.param(pyright, id="pyright")],
)
def findings(installed, request):
    """What a type checker finds; it reads the wheel once for both programs."""
    (installed / "wrong.py").write_text(WRONG)
    return request.param(installed)


def test_type_checkers_follow_an_editable_installation(tmp_path):
    code = f"from setuptools import build_meta; build_meta.build_editable({str(tmp_path)!r})"
    run(sys.executable, "-c", code, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" not in name}
    (path,) = files.values()
    assert next(iter(files)).endswith(".pth")
    assert path.splitlines() == [str(ROOT)]
    (tmp_path / "program.py").write_text("from rstar2_env.trainers import make\nfrom rstar2_env.agents import AGENTS\n")
    (tmp_path / "wrong.py").write_text("from rstar2_env.trainers import make\nmake('grpo', modle='PATH')\n")
    found = pyright(tmp_path, path.strip())
    assert [each[:3] for each in found if each[2] == "error" and "not accessed" not in each[3]] == [
        ("wrong", 2, "error")
    ]


def test_the_program_uses_every_name_of_the_face():
    imported = {
        alias.name
        for node in ast.walk(ast.parse(FACE.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "rstar2_env"
        for alias in node.names
    }
    assert imported == set(rstar2_env.__all__) - {"__version__"}


def test_type_checkers_see_the_face_of_an_installed_wheel(findings):
    found = [each[1:] for each in findings if each[0] == "program"]
    assert [each for each in found if each[1] == "error"] == []
    seen = {line: text for line, kind, text in found if kind == "note"}
    assert seen.keys() == REVEALED.keys()
    assert {line: text for line, text in seen.items() if not re.search(rf"\b{REVEALED[line]}\b", text)} == {}
    assert [text for text in seen.values() if re.search(r'"(Any|Unknown)"', text)] == []


def test_type_checkers_refuse_a_name_that_the_face_lacks(findings):
    assert {line for program, line, kind, _ in findings if (program, kind) == ("wrong", "error")} == {1, 2, 3, 4, 5}
