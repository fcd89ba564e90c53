"""The version of this distribution, for every module; pyproject.toml reads it from here."""

__version__ = "0.1.0"
