"""The game seen from outside: emulator, RAM table, decoded state, observation, segments."""
