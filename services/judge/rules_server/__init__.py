"""The rules judge: an OpenAI-compatible server without a model, for users without one and for fault tests."""
