"""Options: declaration, types and checks; and parts with options, found by name in registries or the user's code."""
