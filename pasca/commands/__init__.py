"""Subcommands, one a file. Each takes what the command line said and returns an Answer; `pasca.cli` prints it."""
