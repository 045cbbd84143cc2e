"""Model servers over HTTP, the rules judge in process, segment archives and key frames."""
