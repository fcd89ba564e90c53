"""The address of the repository: ``python tools/docs_site/address.py [--check]``.

It is written in one place at the release: ``Repository`` of ``[project.urls]`` in pyproject.toml. The command copies it
to the lines ``git clone`` of the documents and to CITATION.cff; the site reads it for its links to the repository. With
``--check`` the command changes nothing, and fails if there is no address yet or if a copy differs. Without an address,
the documents say ``<this repository>``, and the tutorials install the checkout that they are in: the package index has
no package of ours before the release.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN = "<this repository>"
_CLONE = re.compile(r"(?<=git clone )(?:<this repository>|https?://\S+)(?= rstar2-env\b)")
_INSTALLED = re.compile(r'(?<=%pip install --quiet \\")(?:rstar2-env|\.\./\.\.)(?=[\[\\])')
_CITED = re.compile(r"^repository-code: .*\n", re.MULTILINE)


def address(root: Path = ROOT) -> str:
    """Return the address of the repository; empty before it is known.

    Raises:
        ValueError: It is not an address of HTTPS.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    found = str(project.get("urls", {}).get("Repository", "")).rstrip("/")
    if found and not re.fullmatch(r"https://[\w.-]+(/[\w.-]+)+", found):
        raise ValueError(
            f"[project.urls] Repository in pyproject.toml: expected https://HOST/OWNER/NAME, got {found!r}."
        )
    return found


def copies(root: Path = ROOT) -> dict[Path, str]:
    """Return the text that each file with a copy of the address must have, for the tracked files of a checkout."""
    known = address(root)
    package = "rstar2-env" if known else "../.."
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "*.md", "*.ipynb"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    texts = {root / name: (root / name).read_text("utf-8") for name in listed.stdout.splitlines()}
    made = {path: _INSTALLED.sub(package, _CLONE.sub(known or UNKNOWN, text)) for path, text in texts.items()}
    found = {path: made[path] for path, text in texts.items() if _CLONE.search(text) or _INSTALLED.search(text)}
    citation = root / "CITATION.cff"
    cited = _CITED.sub("", citation.read_text("utf-8"))
    line = f'repository-code: "{known}"\n' if known else ""
    found[citation] = re.sub(r"^(?=license:)", line, cited, count=1, flags=re.MULTILINE)
    return found


def differing(root: Path = ROOT) -> list[Path]:
    """Return the files whose copy of the address differs."""
    return [path for path, text in copies(root).items() if path.read_text("utf-8") != text]


def main(root: Path = ROOT) -> int:
    """Copy the address, or check the copies; return 1 if the check fails."""
    if "--check" not in sys.argv[1:]:
        for path in differing(root):
            path.write_text(copies(root)[path], "utf-8")
            print(f"{path.relative_to(root)} names the address now.")
        return 0
    wrong = [
        f"{path.relative_to(root)} has another address: run this command without --check." for path in differing(root)
    ]
    if not address(root):
        wrong.append("pyproject.toml has no address: write Repository below [project.urls].")
    print("\n".join(wrong) or f"All documents name {address(root)}.")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
