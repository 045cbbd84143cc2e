"""What people read of a study: tables and verdict in words, curves, the page, and the tables within docs."""
