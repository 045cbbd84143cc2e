"""Where drivers run: behind one port, a local process or a Ray job."""
