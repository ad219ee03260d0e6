"""One file per subcommand; the file's name is the subcommand's."""
