"""Generated graders with one planted defect each, and sound ones, to measure ``rstar2 audit`` with.

A grader is the source of a Python file with ``grade(gold, answer)``: a number above 0.5 pays. A family is a function of
a ``random.Random`` that returns such a source; ``FAMILIES`` names the kinds of findings that its defect may appear as.
"""
