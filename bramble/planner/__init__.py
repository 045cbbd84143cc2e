"""A search that finds a plan to finish a world, without an emulator."""
