"""A distribution without the page of the viewer is not uploaded."""

import io
import subprocess
import sys
import tarfile
import zipfile

import pytest
from places import ROOT

PAGE = [f"rstar2_env/view/static/{name}" for name in ("index.html", "app.js", "text.js", "app.css", "icon.svg")]


def check(folder):
    command = [sys.executable, str(ROOT / "tools" / "check_distribution.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout


def write(folder, wheel, source):
    with zipfile.ZipFile(folder / "p-1-py3-none-any.whl", "w") as archive:
        for name in wheel:
            archive.writestr(name, "")
    with tarfile.open(folder / "p-1.tar.gz", "w:gz") as archive:
        for name in source:
            archive.addfile(tarfile.TarInfo(f"p-1/{name}"), io.BytesIO())


def test_distributions_with_the_page_pass(tmp_path):
    write(tmp_path, PAGE, PAGE)
    assert check(tmp_path)[0] == 0


@pytest.mark.parametrize("lacks", PAGE)
def test_a_wheel_without_a_file_of_the_page_is_refused(tmp_path, lacks):
    write(tmp_path, [name for name in PAGE if name != lacks], PAGE)
    code, said = check(tmp_path)
    assert code == 1
    assert f".whl lacks the page of `rstar2 view` ({lacks}): run `make view`" in said


def test_a_source_distribution_without_the_page_is_refused(tmp_path):
    write(tmp_path, PAGE, [])
    code, said = check(tmp_path)
    assert code == 1
    assert ".tar.gz lacks the page" in said


def test_a_folder_without_distributions_is_refused(tmp_path):
    code, said = check(tmp_path)
    assert code == 1
    assert "one wheel is expected" in said


def test_a_second_wheel_is_refused(tmp_path):
    write(tmp_path, PAGE, PAGE)
    (tmp_path / "p-1-py3-none-any.whl").rename(tmp_path / "p-0-py3-none-any.whl")
    write(tmp_path, PAGE, PAGE)
    code, said = check(tmp_path)
    assert code == 1
    assert "has 2 files *.whl" in said


def test_make_dist_builds_the_page_first_and_looks_afterwards():
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "dist"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    steps = ("npm run --silent build", "-m build --outdir dist", "tools/check_distribution.py dist")
    places = [done.stdout.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)
