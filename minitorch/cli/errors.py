"""The one exception of the command line."""


class CommandError(Exception):
    """A mistake of the user or of the installation: printed as one line, exit status 2."""
