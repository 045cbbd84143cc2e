"""The errors of this service: a training that was given up, and one that failed."""

from shared.errors import Transient


class TrainingCancelled(Transient):
    """No fault: the service is stopping, or a finished epoch needs the workbench now."""


class TrainingFailed(Transient):
    """The training process ended without a model. The service lives on, and the event comes again."""
