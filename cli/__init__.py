"""The `zelda` command: a REST client and a supervisor of the local stack."""
