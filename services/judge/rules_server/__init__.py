"""The rules judge: an OpenAI-compatible server without a model, for people without one and for fault tests."""
