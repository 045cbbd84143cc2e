"""The event bus behind one port: NATS JetStream, and memory for tests."""
