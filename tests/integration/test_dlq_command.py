"""`zelda dlq` on a real bus."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from typer.testing import CliRunner

from cli.app import build_app
from cli.errors import CliError
from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.provision import provision
from shared.bus.topology import ADVISORIES, JUDGE_SEGMENTS
from tests.events import segment_ready
from tests.servers import NatsServer


@pytest.fixture
async def bus(nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NatsBus]:
    """A bus with three dead letters, configured for the command."""
    monkeypatch.setenv("ZELDA_BUS__URL", nats_server.url)
    client = await connect(nats_server.settings, "judge")
    await provision(nats_server.settings)
    for number in range(3):
        await client.publish(segment_ready(number))
    for delivery in await client.fetch(JUDGE_SEGMENTS, 3, 2):
        await delivery.reject("no manifest")
    yield client
    await client.close()


def zelda(*argv: str) -> str:
    """Run `zelda dlq ...` and return its output; a CliError propagates."""
    outcome = CliRunner().invoke(build_app(["dlq"]), ["dlq", *argv])
    if outcome.exception is not None:
        raise outcome.exception
    return outcome.stdout


async def run(*argv: str) -> str:
    """Run the command in a thread, because it starts its own event loop."""
    return await asyncio.to_thread(zelda, *argv)


async def test_list_shows_them_and_show_shows_the_message(bus: NatsBus) -> None:
    letters = json.loads(await run("list", "--json"))
    assert [letter["reason"] for letter in letters] == ["no manifest"] * 3
    assert "no manifest" in await run("list")
    shown = json.loads(await run("show", str(letters[0]["number"]), "--json"))
    assert json.loads(shown["message"])["type"] == "zelda.segment.ready.v1"


async def test_replay_delivers_again_and_drop_removes(bus: NatsBus) -> None:
    numbers = [str(letter["number"]) for letter in json.loads(await run("list", "--json"))]
    assert await run("replay", numbers[0]) == "replayed: 1\n"
    assert await bus.pending(JUDGE_SEGMENTS) == 1
    assert await run("drop", numbers[1]) == "dropped: 1\n"
    assert json.loads(await run("replay", "--all", "--json")) == {"replayed": [int(numbers[2])]}
    assert json.loads(await run("list", "--json")) == []
    assert await bus.pending(JUDGE_SEGMENTS) == 2


async def test_a_failing_letter_does_not_block_the_others(
    bus: NatsBus,
) -> None:
    await bus.context.publish(ADVISORIES.replace("*.*", "ZELDA_SEGMENTS.judge-segments"), b"{}")
    first, *others, notice = (str(letter["number"]) for letter in json.loads(await run("list", "--json")))
    with pytest.raises(CliError, match=r"1 of 2 dead letters could not be replayed") as caught:
        await run("replay", notice, first)
    assert caught.value.code == 1
    assert [str(letter["number"]) for letter in json.loads(await run("list", "--json"))] == [*others, notice]
    with pytest.raises(CliError, match="is the server's own notice: drop it") as alone:
        await run("replay", notice)
    assert alone.value.code == 5


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (("show", "99"), 5, "no dead letter 99: `zelda dlq list` shows the numbers"),
        (("drop", "99"), 5, "no dead letter 99: `zelda dlq list` shows the numbers"),
        (("replay",), 2, "Name the numbers of dead letters, or use --all."),
        (("drop", "1", "--all"), 2, "Name the numbers of dead letters, or use --all."),
    ],
)
async def test_an_invalid_request_is_reported(bus: NatsBus, argv: tuple[str, ...], code: int, sentence: str) -> None:
    with pytest.raises(CliError) as caught:
        await run(*argv)
    assert (caught.value.code, str(caught.value)) == (code, sentence)


async def test_an_unreachable_bus_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZELDA_BUS__URL", "nats://127.0.0.1:9")
    with pytest.raises(CliError, match=r"bus nats://127\.0\.0\.1:9 not reached") as caught:
        await run("list")
    assert caught.value.code == 3


async def test_only_invalid_bus_settings_are_rejected(bus: NatsBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZELDA_ROM__FILE", "game.gbc")
    assert "no manifest" in await run("list")
    monkeypatch.setenv("ZELDA_BUS__ULR", "nats://127.0.0.1:9")
    with pytest.raises(CliError, match=r"A ZELDA_\* variable is invalid: bus.ulr") as caught:
        await run("list")
    assert caught.value.code == 2


async def test_an_empty_list_says_so(bus: NatsBus, capsys: pytest.CaptureFixture[str]) -> None:
    await run("drop", "--all")
    assert json.loads(await run("list", "--json")) == []
    outcome = await asyncio.to_thread(CliRunner().invoke, build_app(["dlq"]), ["dlq", "list"])
    assert "There are no dead letters" in outcome.output
