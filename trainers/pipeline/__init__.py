"""Pipelines: a sequence of stages as one run that can be killed at any point and resumed.

Modules: ``file`` reads a pipeline, ``plan`` orders its stages, ``run`` runs them, and ``stages`` has one module per
kind of stage. No module here loads torch before a stage needs it.
"""
