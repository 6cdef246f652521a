"""Variables: arrays that remember which op made them, their versions and their views.

In: an array, with the edge of its gradient. Out: what ops take, save until the backward
and return. Read `variable`, `version`, `view`, `saved_variable`, then `node_hooks` and
`grad_rules`; `return_types` are named tuples of variables.
"""
