"""From a RAM image to a GameState."""
