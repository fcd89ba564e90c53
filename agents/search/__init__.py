"""Agents that search before they answer, over the trees of ``rstar2_env.search``; one per file, found by name."""

from rstar2_env.core.options.registry import import_modules

import_modules(__name__)
