"""``gradviz doctor``: checks of what gradviz needs, and of what it works with.

In: the machine, and the packages that are installed. Out: a finding for each. Read
`command`, `health`, which needs nothing but Python and Click, then `surroundings`.
"""
