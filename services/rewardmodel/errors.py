"""The error of this service that is no fault."""

from shared.errors import Transient


class Interrupted(Transient):
    """A training was given up: the service is stopping, or a finished epoch needs the workbench now."""
