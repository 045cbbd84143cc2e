"""From a GameState to the observation obs/v1."""
