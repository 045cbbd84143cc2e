"""The documents and events that services exchange; the only thing they share besides infrastructure."""
