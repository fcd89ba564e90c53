"""What the viewer answers about a run, as JSON can hold it: from its index, and from its small files.

Every module has one kind of answer; docs/viewer.md lists them with their addresses. Not covered: HTTP (``server``).
"""
