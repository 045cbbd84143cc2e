"""Commands on one run of the coordinator, and the files that the command line writes for it."""
