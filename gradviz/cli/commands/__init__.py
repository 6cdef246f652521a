"""Commands that are one file each, called as the command is.

In: the arguments of a command. Out: text on stdout, a file, a server or a full screen.
Read `check`, `explain`, `diff`, `simulate`; `export`, `merge`, `notebook`, which write
files or cells; `replay` and `view`, which stay open; `attach`, which records.
"""
