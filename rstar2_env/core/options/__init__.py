"""Options, and parts with options: declaration, rules, text forms, registries, user code."""
