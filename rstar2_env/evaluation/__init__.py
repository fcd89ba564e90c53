"""Playing episodes and judging them: one episode, many, their figures and their log, validation, cards."""
