"""What at least two services use: contracts, bus, store, state, game, runtime."""
