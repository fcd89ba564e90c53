"""The queries of the viewer: their results are JSON-compatible values from the index and the small files of a run.

Each module computes one kind of result; docs/viewer-reference.md lists the results with their addresses. Not covered:
HTTP (``server``).
"""
