"""Modules that every other package uses: errors, statuses, the episode, registries, options, plugins, HTTP."""
