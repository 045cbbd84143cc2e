"""The `zelda` command: REST client and local supervisor."""
