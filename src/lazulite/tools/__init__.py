"""Programs that use the library: the command line and the demonstration."""
