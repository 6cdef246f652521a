"""The words that workers exchange, and how one waits for an answer.

In: values of a program, names of its functions. Out: frozen messages that JSON can
carry, and futures. Read `ids`, `values`, `messages`, `future`, `failures`, then the
rest.
"""
