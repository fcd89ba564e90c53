"""From text to tree: cleaning, tokens, the grammar, units, and locating the answer in a response."""
