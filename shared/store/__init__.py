"""The object store behind one port: S3, a directory, and memory for tests."""
