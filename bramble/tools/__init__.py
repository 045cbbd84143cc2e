"""Tools around the game: pictures, videos, curriculum states, and how hard a world is."""
