"""The subcommands of the command line, one module each; those of one layer alone may live there.

A module has ``add_parser(subparsers)``, which adds its parser and sets the default ``handler``: a function of
the parsed arguments that returns the exit code. Heavy modules are imported inside the handler, so that help
is quick.
"""
