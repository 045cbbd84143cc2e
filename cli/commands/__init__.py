"""The commands of `zelda`, one module each. `cli.app` imports only the one that is called."""
