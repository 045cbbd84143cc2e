"""The error of a request that the rules server cannot serve."""


class BadRequest(ValueError):
    """The request is invalid or unsupported. The client gets the message with status 400."""
