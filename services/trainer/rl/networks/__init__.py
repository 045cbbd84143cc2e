"""What the networks have beside their layers: pictures as input, and memory."""
