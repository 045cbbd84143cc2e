"""The REST interface: routes, commands on runs, authentication, limits, and errors as problem documents."""
