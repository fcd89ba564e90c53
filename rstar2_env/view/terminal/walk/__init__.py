"""The interactive mode of ``rstar2 view --text``: lists of runs and episodes, overviews and episodes, used with keys.

Rows, filters, sort orders and searches come from ``Answers``, as for the page and the printed view. Only this package
imports textual. Text from a run is sanitized and never interpreted as markup.
"""
