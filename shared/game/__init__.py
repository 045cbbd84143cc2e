"""The game from outside: games, emulator, RAM table, decoded state, observation, recording."""
