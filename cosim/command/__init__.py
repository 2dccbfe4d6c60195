"""The commands of the command line, one module each, imported when their command is given."""
