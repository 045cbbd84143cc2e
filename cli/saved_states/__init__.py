"""`zelda states`: states of a game that a user saved, where runs may begin episodes."""
