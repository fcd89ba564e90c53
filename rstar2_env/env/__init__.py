"""Multi-turn text environments and their parts: spaces, grading, rendering, the vector form."""
