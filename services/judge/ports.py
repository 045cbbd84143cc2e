"""What the judge's application code needs from outside: somebody who answers a chat. Nothing of HTTP shows here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from shared.contracts.scores import Usage
from shared.errors import Transient


class RouteUnavailable(Transient):
    """The route gave no answer: refused, timed out, overloaded, or its breaker is open. Another time it may."""


class RequestRefused(Exception):
    """The server will never answer this request: too long, or malformed in its eyes. The message says why."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One chat request. `body` holds everything but `n` and `seed`, which differ between asks for the same prompt.

    A model calls `sending` before each request that it really sends; what that raises ends the ask. It calls
    `unanswered` after one that was served, as far as it knows, but whose answer, and cost, nobody will ever learn.
    """

    body: dict[str, Any]
    n: int
    seed: int
    fairness: str
    on_send: Callable[[], None] = lambda: None
    on_lost_response: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Choice:
    """One sample as the server gave it: anything at all, until replies.py has looked at it."""

    content: object
    finish_reason: object


@dataclass(frozen=True, slots=True)
class Completion:
    """The samples of one request and what they cost. Tokens are None when the server did not say."""

    choices: tuple[Choice, ...]
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    seconds: float


class ChatModel(Protocol):
    """A model behind a route."""

    async def complete(self, question: CompletionRequest) -> Completion:
        """Answer, or raise RouteUnavailable or RequestRefused. Never lasts longer than wait and total time allow."""
        ...

    def seconds_since_response(self) -> float:
        """Seconds since it last answered any call, or else since the process began."""
        ...


def usage_of(answer: Completion, most: Usage) -> Usage:
    """Tokens and time of an answer. Where the server is silent the upper bound counts: never too little."""
    return Usage(
        prompt_tokens=most.prompt_tokens if answer.prompt_tokens is None else answer.prompt_tokens,
        cached_tokens=min(answer.cached_tokens or 0, answer.prompt_tokens or 0),
        output_tokens=most.output_tokens if answer.output_tokens is None else answer.output_tokens,
        seconds=answer.seconds,
    )
