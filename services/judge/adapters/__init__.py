"""The rules judge in process, segment archives and key frames."""
