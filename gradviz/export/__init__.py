"""Traces as the files of other tools: one module a format, each with its `parts`.

In: a trace. Out: the bytes of a file, piece by piece, so that a long trace is never in
memory a second time. Read `timeline`, the slices and tracks that viewers get, then a
format: `chrome`, `perfetto`, `speedscope`; `tables`, then `csv`, `parquet`, `sqlite`;
`jsonl`. `excerpt` takes some passes out of a trace.
"""
