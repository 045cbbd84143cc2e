"""An archive of states: for each cell of the game the best path into it, and which cell to return to (Go-Explore)."""
