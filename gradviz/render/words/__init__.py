"""Words and numbers as people read them: escaped, shortened, with units.

In: names, numbers and events of a trace. Out: harmless text. Read `text`,
`event_words`.
"""
