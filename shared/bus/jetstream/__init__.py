"""The bus adapter for NATS JetStream."""
