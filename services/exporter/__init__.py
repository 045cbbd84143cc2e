"""Exporter: replays segments into PNG, JSONL and video; emits `segment.exported`."""
