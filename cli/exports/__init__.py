"""What `zelda export` writes beside the exporter's own files: figures for trackers, data sets in Minari's format."""
