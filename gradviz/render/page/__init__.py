"""A page of one file: backward passes to look at in a browser, without a network.

In: a trace, and its passes that are wanted. Out: HTML. Read `document`, which says what
a page holds; `columns`, which packs it into bytes; `html`, which puts these, the
program and its style into one file. The program is written in TypeScript in `source/`
and built into `static/` by ``make page``; docs/page.md tells how it works.
"""
