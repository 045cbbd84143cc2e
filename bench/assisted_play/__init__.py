"""Set-ups of assisted play: a room with an open puzzle, and a server that never answers."""
