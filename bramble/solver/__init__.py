"""A player that finishes worlds in the emulator: it reads RAM and presses buttons."""
