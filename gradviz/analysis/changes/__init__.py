"""Two passes compared.

In: two passes, of one trace or of two. Out: what appeared, vanished, moved or took
longer; and verdicts on conditions of a gate. Read `matching`, `turns`, `node_facts`,
`pass_comparison`, `conditions`; for pictures `node_changes`, `union_graph`.
"""
