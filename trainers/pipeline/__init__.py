"""Pipelines: stages one after the other, as one run that can be killed anywhere and goes on where it was.

``file`` reads a pipeline, ``plan`` puts its stages in order, ``run`` runs them, ``stages`` has one file for each kind.
Nothing here loads torch before a stage trains.
"""
