"""Build the distributions: pyproject.toml has everything but the long description, which is made from README."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools" / "docs_site"))

from index_page import index_page

setup(long_description=index_page(), long_description_content_type="text/markdown")
