"""Distributes calls over several sandbox servers (a fleet); each call has one outcome, even if servers are lost.

Covered: ``client`` (the sandbox and its thread), ``dispatch`` (sending calls and handling failures), ``servers`` (which
servers are up), ``balance`` (distribution of calls), ``homes`` (sessions), ``calls`` (one call), ``link`` (the client's
view of one server), ``codec`` (jobs and outcomes as JSON, shared with the server). Not covered: the list of servers,
which ``remote`` reads from its options and ``ray`` starts on the nodes of a cluster; the server itself (``serve``).
"""
