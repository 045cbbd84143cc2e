"""Adds up the gradients of all learners over Gloo, which needs no GPU and no open port beside those of Ray's pods."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

import torch
from torch.distributed import ProcessGroupGloo, TCPStore  # type: ignore[attr-defined]

from shared.errors import Fatal

TIMEOUT: Final = timedelta(minutes=5)
"""A learner that is silent for so long has failed. It exceeds the transfer of a large batch to a busy node."""


class Meeting(NamedTuple):
    """Where the learners of a session find each other."""

    host: str
    port: int
    ranks: int


class GradientSum:
    """One learner's end of the connection between all learners."""

    def __init__(self, meeting: Meeting, rank: int, host: str, store: TCPStore | None = None) -> None:
        """Connect; it waits for the other learners. `host` is this node's address, `store` that of rank 0."""
        self.rank, self.ranks = rank, meeting.ranks
        self._store = store or TCPStore(meeting.host, meeting.port, None, False, TIMEOUT)
        gloo: Any = ProcessGroupGloo  # torch's type stubs lack its options
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname=host)]
        options._timeout = TIMEOUT
        self._group = gloo(self._store, rank, self.ranks, options)

    def add_up(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Replace each gradient by the sum over all learners. Raises Fatal if one of them is gone.

        All learners must call it for the same parameters in the same order.
        """
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients]).cpu()  # Gloo adds up on the CPU
        try:
            self._group.allreduce([flat]).wait()
        except RuntimeError as error:
            raise Fatal(f"a learner process is gone ({error}): the driver starts again from its checkpoint") from error
        sums = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, total in zip(gradients, sums, strict=True):
            gradient.copy_(total.view_as(gradient))
