"""Options and their rules, and parts that take options: written as text, found in registries or in the user's code."""
