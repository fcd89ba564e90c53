"""Distributes calls over several sandbox servers (a fleet); each call has one outcome, even if servers are lost.

Modules: ``client`` (the sandbox and its thread), ``dispatch`` (sends calls and handles failures), ``servers`` (which
servers are up), ``balance`` (distribution of calls), ``homes`` (sessions), ``calls`` (one call), ``link`` (the client's
view of one server), ``codec`` (jobs and outcomes as JSON, shared with the server). Not covered: the servers themselves
(``serve``), and their list: ``remote`` reads it from its options, and ``ray`` starts one server on each cluster node.
"""
