"""Adapters of the exporter: score objects, video, Parquet files and directories."""
