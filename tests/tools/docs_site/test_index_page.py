"""README as a package index shows it has no link that needs the repository's folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from index_page import index_page
from markdown_links import targets
from places import ROOT

URL = "https://git.example.org/people/rstar2-env"
README = """# A package
[Pages](docs/a.md#part), [a site](https://example.org) and `[code](docs/b.md)`: 0.46<!-- made.part.share -->.

![A curve](docs/curve.png)

```sh
cat "[this](docs/c.md)"
```
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository without an address."""
    (tmp_path / "rstar2_env" / "core").mkdir(parents=True)
    (tmp_path / "rstar2_env" / "core" / "version.py").write_text('"""The version."""\n\n__version__ = "1.2.3"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "rstar2-env"\n[project.urls]\n')
    (tmp_path / "README.md").write_text(README)
    return tmp_path


def test_links_lead_to_the_tag_of_the_version(checkout: Path) -> None:
    with (checkout / "pyproject.toml").open("a") as file:
        file.write(f'Repository = "{URL}"\n')
    assert targets(index_page(checkout)) == [
        f"{URL}/blob/v1.2.3/docs/a.md#part",
        "https://example.org",
        f"{URL}/raw/v1.2.3/docs/curve.png",
    ]


def test_without_an_address_links_become_their_text_and_code_stays(checkout: Path) -> None:
    assert index_page(checkout) == README.replace("[Pages](docs/a.md#part)", "Pages").replace(
        "![A curve](docs/curve.png)\n\n", ""
    ).replace("<!-- made.part.share -->", "")


def test_a_package_without_a_version_is_refused(checkout: Path) -> None:
    (checkout / "rstar2_env" / "core" / "version.py").write_text("")
    with pytest.raises(ValueError, match="__version__"):
        index_page(checkout)


def test_the_readme_of_this_repository_is_made_whole() -> None:
    text = index_page(ROOT)
    assert all(target.startswith("https://") for target in targets(text))
    assert "<!--" not in text
