"""`zelda open`: the live page in a browser."""
