"""The version of this distribution, where every module can read it; pyproject.toml takes it from here."""

__version__ = "0.1.0"
