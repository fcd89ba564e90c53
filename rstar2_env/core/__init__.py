"""Basic modules used by all other packages: errors, statuses, episodes, registries, options, plugins, HTTP."""
