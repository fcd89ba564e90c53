"""A fleet: calls spread over sandbox servers, each with exactly one outcome whatever is lost.

Covered: ``client`` (the sandbox and its thread), ``dispatch`` (sending calls and handling failures), ``servers`` (which
are up), ``balance`` (how many calls go where), ``homes`` (sessions), ``calls`` (one call), ``link`` (one server as the
client sees it), ``codec`` (jobs and outcomes as JSON, shared with the server). Not covered: which servers there are,
which ``remote`` reads from its options and ``ray`` starts on the nodes of a cluster, and the server itself (``serve``).
"""
