"""The command line: one file a command, each of which reads, calls and prints."""
