"""The command line: one file a command, each of which reads, calls and prints.

In: arguments. Out: text on stdout, or a file; all else goes to stderr. Read `main`,
`console`, then a command: `run`, `show`, `render` and `doctor` are rooms, the others
files in `commands`.
"""
