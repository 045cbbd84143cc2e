"""What judge and planner need from outside: a model that completes a chat. Nothing here depends on HTTP."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from shared.contracts.scores import Usage
from shared.errors import Transient


class RouteUnavailable(Transient):
    """The route gave no answer: refused, timed out, overloaded, or its breaker is open. A later call may succeed."""


class RouteTimeout(RouteUnavailable):
    """The route did not answer within the time limit of a call. The limit may grow: a later call may be answered."""


class RequestRefused(Exception):
    """The server will never accept this request: it is too long, or malformed. The message says why."""


class TooManyChoices(RequestRefused):
    """The server refuses this number of choices; the model has noted how many one request may ask for."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One chat request. `body` holds all fields but `n` and `seed`, which differ between requests of one prompt.

    A model calls `on_send` before each HTTP request; an exception from it ends the call. It calls `on_lost_response`
    after a request that the server may have processed, but whose response, and therefore cost, is lost.
    """

    body: dict[str, Any]
    n: int
    seed: int
    fairness_id: str
    on_send: Callable[[], None] = lambda: None
    on_lost_response: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """One token of a reply, and the tokens that could stand in its place with their log-probabilities."""

    text: str
    options: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One sample as the server returned it: unchecked until the caller parses it.

    `tokens` is empty unless the request asked for log-probabilities and the server has them.
    """

    content: object
    finish_reason: object
    tokens: tuple[TokenOptions, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """The samples of one request and their cost. Tokens are None if the server does not report them."""

    choices: tuple[Choice, ...]
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    seconds: float


class ChatModel(Protocol):
    """A model behind a route."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the completion within queueing and total timeout.

        Raises RouteUnavailable (RouteTimeout after the total timeout) or RequestRefused.
        """
        ...

    def choices_per_request(self, wanted: int) -> int:
        """Return how many of these choices one request may ask for, as far as it is known."""
        ...

    @property
    def call_limit_s(self) -> float:
        """The longest time that one call may take now."""
        ...

    def seconds_since_response(self) -> float:
        """Seconds since the model last answered any call, or since the process started."""
        ...


def usage_of(completion: Completion, upper: Usage) -> Usage:
    """Return tokens and seconds of a completion. An unreported count is taken from the upper bound."""
    return Usage(
        prompt_tokens=upper.prompt_tokens if completion.prompt_tokens is None else completion.prompt_tokens,
        cached_tokens=min(completion.cached_tokens or 0, completion.prompt_tokens or 0),
        output_tokens=upper.output_tokens if completion.output_tokens is None else completion.output_tokens,
        seconds=completion.seconds,
    )
