"""How many fights each version of the option `strike` wins."""
