"""Guards of the JetStream adapter that need no server: what is sent, and which answers belong to a request."""

import subprocess
import sys
from typing import Any

import pytest
from nats.aio.msg import Msg

from shared.bus.jetstream.bus import NatsBus
from shared.bus.jetstream.pull_consumer import PullConsumer
from shared.bus.port import one_line
from shared.contracts.envelope import MAX_EVENT_BYTES
from shared.errors import Permanent, Transient
from tests.events import segment_ready


async def test_an_event_that_is_too_large_is_never_sent() -> None:
    large = segment_ready().model_copy(update={"traceparent": "0" * MAX_EVENT_BYTES})
    with pytest.raises(Permanent, match=rf"the limit is {MAX_EVENT_BYTES}; use the store"):
        await NatsBus("trainer").publish(large)


def test_a_dead_letters_reason_breaks_no_header() -> None:
    assert one_line("HTTP 500\r\nX: y") == "HTTP 500  X: y"


class Server:
    """A client whose server answers each request with the next of these answers, into one inbox."""

    def __init__(self, *answers: list[Msg]) -> None:
        self.answers, self.waiting = list(answers), list[Msg]()

    def new_inbox(self) -> str:
        return "_INBOX"

    async def subscribe(self, subject: str, **options: Any) -> "Server":
        return self

    async def publish(self, subject: str, body: bytes, reply: str) -> None:
        self.waiting += self.answers.pop(0) if self.answers else []

    @property
    def pending_msgs(self) -> int:
        return len(self.waiting)

    async def next_msg(self, timeout: float) -> Msg:  # noqa: ASYNC109 - the client's signature
        if not self.waiting:
            raise TimeoutError
        return self.waiting.pop(0)


def message(text: bytes) -> Msg:
    return Msg(_client=None, subject="zelda.v1.demo.segment.ready", data=text)  # type: ignore[arg-type]


def status(code: str, request: int) -> Msg:
    return Msg(_client=None, subject=f"_INBOX.{request}", headers={"Status": code})  # type: ignore[arg-type]


async def fetched(pull: PullConsumer, batch: int) -> list[bytes]:
    return [one.data for one in await pull.fetch(batch, 0.01)]


async def test_the_end_of_an_earlier_request_does_not_end_the_next_one() -> None:
    server = Server([status("408", request=0), message(b"first"), message(b"second"), status("404", request=1)])
    assert await fetched(PullConsumer(server, "S", "c"), 5) == [b"first", b"second"]  # type: ignore[arg-type]


async def test_messages_that_arrive_late_are_handed_out_no_more_than_asked_for() -> None:
    server = Server()
    pull = PullConsumer(server, "S", "c")  # type: ignore[arg-type]
    assert await fetched(pull, 2) == []
    server.waiting = [status("408", request=2), message(b"first"), message(b"second"), message(b"third")]
    assert [await fetched(pull, 2) for _ in range(2)] == [[b"first", b"second"], [b"third"]]


@pytest.mark.parametrize("code", ["409", "503"])
async def test_messages_before_a_failure_of_their_request_are_handed_out(code: str) -> None:
    server = Server([message(b"first"), status(code, request=1)], [status(code, request=2)])
    pull = PullConsumer(server, "S", "c")  # type: ignore[arg-type]
    assert await fetched(pull, 5) == [b"first"]
    with pytest.raises(Transient, match=code):
        await fetched(pull, 5)


def test_publishes_are_exported_as_0_before_the_first() -> None:
    """In a process of its own: other tests publish."""
    program = "import prometheus_client, shared.bus.metrics; print(prometheus_client.generate_latest().decode())"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    for outcome in ("stored", "repeated", "failed"):
        assert f'zelda_bus_published_total{{outcome="{outcome}"}} 0.0' in shown.stdout.splitlines()
