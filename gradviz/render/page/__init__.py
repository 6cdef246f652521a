"""A page of one file: backward passes to look at in a browser, without a network.

`gradviz.render.page.document` says what the page holds, `columns` packs it into bytes,
`html` puts these, the program and its style into one file. The program is written in
TypeScript in `source/` and built into `static/` by ``make page``; docs/page.md tells
how it works.
"""
