"""The queries of the viewer: JSON-compatible results from the index and the small files of a run.

Each module has one kind of result; docs/viewer-reference.md lists them with their addresses. Not covered: HTTP
(``server``).
"""
