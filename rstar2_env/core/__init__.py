"""What every other package names: errors, statuses, the episode, registries, options, plugins, HTTP."""
