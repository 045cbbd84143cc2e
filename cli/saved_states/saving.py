"""Saves a state in the store, and reads what it is saved from."""

import os
from datetime import UTC, datetime
from pathlib import Path

from cli.errors import CONFLICT, NOT_FOUND, CliError
from cli.saved_states.capture import Load, capture, picture_of
from cli.stack.user_settings import find_rom, require_rom
from cli.stored_runs import read_store
from cli.trace.run_documents import read_documents
from shared.contracts.base import sha256
from shared.contracts.epoch import SavedState
from shared.contracts.ids import Digest, RunId, SegmentId, StateName
from shared.contracts.run import RunConfig
from shared.game.emulator.emulator import EMULATOR
from shared.game.games.registry import GameRequest
from shared.game.recording.png import palette_png
from shared.game.recording.segment import Segment, pack_state, read_segment, unpack_state
from shared.state.saved_states import SavedStates, StateNameTaken, UnknownState
from shared.store import keys
from shared.store.port import NotFound, Store


def save_state(name: StateName, config: RunConfig, load: Load, source: str, rom: Path | None) -> SavedState:
    """Save what `load` brings about. CliError if it cannot be played on, or if the name is in use."""
    captured = capture(_request(config, rom), config.game, load)
    content = pack_state(captured.state)
    digest = Digest(sha256(content))
    state = SavedState(
        name=name,
        key=keys.saved_state_content(digest),
        digest=digest,
        game=config.game,
        world=config.world,
        difficulty=config.difficulty,
        seed=config.seed,
        rom=Digest(captured.rom),
        emulator=EMULATOR,
        place=captured.place,
        milestones=captured.milestones,
        source=source[:300],
        created=datetime.now(UTC),
    )

    async def work(store: Store) -> None:
        try:
            await SavedStates(store).create(state, content)
        except StateNameTaken as error:
            raise CliError(CONFLICT, f"{error}.") from error

    read_store(work)
    return state


def read_state(name: StateName) -> tuple[SavedState, bytes]:
    """The document of a saved state, and the state itself, compressed."""

    async def work(store: Store) -> tuple[SavedState, bytes]:
        states = SavedStates(store)
        try:
            state = await states.read(name)
        except UnknownState as error:
            raise CliError(NOT_FOUND, f"{error}.") from error
        return state, await states.content(state)

    return read_store(work)


def draw_state(state: SavedState, content: bytes, rom: Path | None) -> bytes:
    """What the screen shows, as PNG."""
    return palette_png(picture_of(_request(state, rom), state.game, unpack_state(content)), scale=3)


def recorded_segment(run: RunId, segment: SegmentId) -> tuple[RunConfig, Segment]:
    """A segment of a finished epoch, and the configuration of its run."""

    async def work(store: Store) -> tuple[RunConfig, Segment]:
        documents = await read_documents(store, run)
        place = documents.segment(segment)
        if place is None:
            raise NotFound(f"no finished epoch of {run} lists a segment {segment}")
        _, reference = place
        return documents.orders[0].config, read_segment(await store.get(reference.key, reference.digest))

    return read_store(work, run)


def _request(played: RunConfig | SavedState, rom: Path | None) -> GameRequest:
    image = find_rom(os.environ, rom)
    require_rom(played.game, image)
    return GameRequest(played.world, played.difficulty, played.seed, rom=image)
