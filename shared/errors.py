"""The errors that decide what happens next.

ZeldaError
├── Transient      try again later (the bus redelivers with backoff)
├── Permanent      never succeeds as it is (dead letter, with the reason)
│   ├── ContractError    bytes that are not the document they claim to be
│   └── DigestMismatch   an object whose content is not what the event promised
└── Fatal          this process cannot go on (exit, and let the platform restart it)

Anything else that escapes a handler is treated as Transient and logged with its traceback.
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
