"""A server of pages for one person: traces in a browser on the same machine.

In: requests of a browser. Out: pages of traces. Read `http`, which reads and writes
requests and responses; `admission`, which says who may ask; `server`, which talks to
browsers within limits; `shelf`, the traces; `site`, which answers with pages of them,
and with `lists`.

Note [A server of our own]
~~~~~~~~~~~~~~~~~~~~~~~~~~
It answers GET for a handful of addresses, to one person, over no network. What makes
that safe is to be decided here with any library beneath: who may ask, how long a head
may be and how long it may take, that no path names a file. What a framework and its
server would add, routing and parsing of bodies, is not needed, and they would be six
more packages to trust. What a request may be is far less than what HTTP allows: what
no browser sends is refused.
"""
