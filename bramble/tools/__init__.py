"""Tools around the game: pictures, videos, and how hard a world is."""
