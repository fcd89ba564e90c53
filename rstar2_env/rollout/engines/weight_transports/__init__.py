"""Transports (``folder``, ``group``, ``adapter``): ways to send new weights to an engine's servers.

``base`` defines their interface, ``make`` creates one by name, and the remaining modules are parts of the transports.
"""
