"""Agents that search before they answer, with the algorithms of ``rstar2_env.search``; one agent per file."""

from rstar2_env.core.options.registry import import_modules

import_modules(__name__)
