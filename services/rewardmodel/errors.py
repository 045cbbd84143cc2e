"""Errors of this service: a cancelled training, and a failed one."""

from shared.errors import Transient


class TrainingCancelled(Transient):
    """The service is stopping. Not a fault."""

    def __init__(self) -> None:
        super().__init__("the training was cancelled; the redelivered event starts it again")


class TrainingFailed(Transient):
    """The training process ended without a model. The service continues, and the bus delivers the event again."""
