"""The error tree: the class of an error decides what happens next.

ZeldaError
├── Transient      retry later (the bus redelivers with backoff)
├── Permanent      never succeeds (dead letter with the reason)
│   ├── ContractError    bytes that do not parse as the claimed document
│   └── DigestMismatch   an object whose content differs from the event's digest
└── Fatal          this process cannot continue (exit; the platform restarts it)

Any other exception of a handler counts as Transient and is logged with its traceback.
"""


class ZeldaError(Exception):
    """Root of every error raised on purpose. The message is one sentence: what is wrong, where, what to do."""


class Transient(ZeldaError):
    """The same work may succeed later: a server is away, a limit is reached."""


class Permanent(ZeldaError):
    """The same work can never succeed: the input itself is wrong."""


class ContractError(Permanent):
    """Bytes from outside do not parse as the contract they claim."""


class DigestMismatch(Permanent):
    """An object's SHA-256 differs from the one recorded for it."""


class Fatal(ZeldaError):
    """The process cannot do any work: wrong credentials, missing topology, closed connection."""
