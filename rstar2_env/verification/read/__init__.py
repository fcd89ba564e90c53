"""Parse the text of an answer into a tree: cleaning, tokens, grammar, units, and finding the answer in a response."""
