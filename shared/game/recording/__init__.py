"""The segment archive: state rows, pictures, bytes, and replay."""
