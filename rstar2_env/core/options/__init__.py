"""Options and the parts that have them: declaration, rules, text forms, registries, code of the user's own."""
