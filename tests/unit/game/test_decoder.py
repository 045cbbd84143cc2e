"""Any memory decodes; missing capabilities are unknown; the decoder interprets the bytes correctly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bramble.registration import bramble_game
from services.trainer.games import GAMES
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.objects import PAGE, PAGES, PEOPLE, TREASURE
from shared.game.decoding.state import GameState
from shared.game.decoding.static_parts import STATIC, enabled_of, static_parts
from shared.game.errors import UnknownRom
from shared.game.games.oracle import ORACLE_MD5, identify_rom
from shared.game.observation.encoder import VectorEncoder
from shared.game.observation.layout import FEATURES, UNKNOWN
from shared.game.observation.trace import EpisodeTrace
from shared.game.ram import capabilities, offsets, variables
from shared.game.ram.table import IMAGE_SIZE
from shared.game.recording.state_rows import StateRow, StateRowWriter
from tests.unit.game.noise import images

EVERYTHING = capabilities.all_capabilities()


@given(
    st.lists(images(), min_size=1, max_size=3), st.sampled_from((capabilities.CORE, capabilities.BRAMBLE, EVERYTHING))
)
def test_any_bytes_give_a_state_a_row_and_a_finite_observation(moments: list[bytes], has: frozenset[str]) -> None:
    decoder, encoder = Decoder(has), VectorEncoder(has)
    state = decoder.begin(moments[0])
    trace = EpisodeTrace(state)
    observations = [encoder.begin(state, trace)]
    for image in moments[1:]:
        state = decoder.decode(image)
        trace.step(state, 3)
        observations.append(encoder.step(state, trace))

    StateRow.from_bytes(StateRowWriter().line(state, 1, 3).encode())
    for observation in observations:
        assert np.isfinite(observation).all()
        assert np.abs(observation).max() <= 1


@given(st.lists(images(), min_size=1, max_size=3))
def test_decoding_reads_only_static_parts_and_objects_in_use(moments: list[bytes]) -> None:
    whole, parts = Decoder(EVERYTHING), Decoder(EVERYTHING)
    for image in moments:
        one, other = whole.decode(image), parts.decode(needed_bytes(image))

        assert StateRowWriter().line(one, 0, 0) == StateRowWriter().line(other, 0, 0)
        assert one[: GameState._fields.index("scene")] == other[: GameState._fields.index("scene")]


def needed_bytes(image: bytes) -> bytes:
    """The image with zeros everywhere but in its static parts and the object pages up to the last one in use."""
    parts, kept = static_parts(image), bytearray(IMAGE_SIZE)
    for place, part in zip(STATIC, parts, strict=True):
        kept[place] = part
    pages = max(2, *(len(column.rstrip(b"\0")) for column in enabled_of(parts)))  # hero and companion always count
    objects = slice(PAGES, PAGES + pages * PAGE)
    kept[objects] = image[objects]
    return bytes(kept)


@given(st.lists(images(), min_size=2, max_size=4))
def test_decoder_with_memory_equals_a_fresh_one(moments: list[bytes]) -> None:
    """Static parts are decoded only when they change; nothing of the previous image may show."""
    decoder = Decoder(EVERYTHING)
    for image in (moment for moment in moments for _ in range(2)):
        remembered, fresh = (
            decoder.decode(image)._replace(sounds=()),
            Decoder(EVERYTHING).decode(image)._replace(sounds=()),
        )

        assert StateRowWriter().line(remembered, 0, 0) == StateRowWriter().line(fresh, 0, 0)
        assert (remembered.neighbours, remembered.control) == (fresh.neighbours, fresh.control)


@given(images())
def test_unknown_is_never_zero(image: bytes) -> None:
    has = capabilities.CORE
    state = Decoder(has).decode(image)
    observation = VectorEncoder(has).begin(state, EpisodeTrace(state))

    assert state.inventory.rupees is None
    assert state.season is None
    assert state.sounds is None
    for place, feature in enumerate(FEATURES):
        if feature.capability not in has:
            assert observation[place] == UNKNOWN, feature.name


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("rupees", b"\x23\x01", 123),  # BCD, low byte first: not 0x0123
        ("bombs", b"\x10", 10),
        ("enemies_killed", b"\x23\x01", 0x123),  # plain binary
        ("link_z", b"\xf0", -16),
        ("play_time", b"\x01\x00\x01\x00", 65537),
        ("small_keys", bytes(range(12)), bytes(range(12))),
    ],
)
def test_encodings(name: str, raw: bytes, value: int | bytes) -> None:
    image = bytearray(IMAGE_SIZE)
    offset = variables.entries()[name].offset
    image[offset : offset + len(raw)] = raw

    assert variables.read(bytes(image), name) == value


def test_sound_log_reports_each_event_once_across_the_wrap() -> None:
    image = bytearray(IMAGE_SIZE)
    decoder = Decoder(EVERYTHING)
    image[offsets.SOUND_QUEUE_TAIL] = 0xAE
    decoder.begin(bytes(image))
    image[offsets.SOUND_QUEUE + 14] = 0x4D
    image[offsets.SOUND_QUEUE + 15] = 0x70
    image[offsets.SOUND_QUEUE] = 0x73
    image[offsets.SOUND_QUEUE_TAIL] = 0xA1

    assert decoder.decode(bytes(image)).sounds == (0x4D, 0x70, 0x73)
    assert decoder.decode(bytes(image)).sounds == ()


def test_shield_of_level_one_without_the_treasure_is_no_shield() -> None:
    image = bytearray(IMAGE_SIZE)
    image[offsets.SHIELD_LEVEL] = 1
    assert Decoder(EVERYTHING).decode(bytes(image)).inventory.shield == 0

    image[offsets.TREASURE_FLAGS] = 2
    assert Decoder(EVERYTHING).decode(bytes(image)).inventory.shield == 1


def test_a_treasure_is_seen_only_once_it_has_appeared() -> None:
    image, slot = bytearray(IMAGE_SIZE), PAGES + PEOPLE + PAGE
    image[slot + offsets.OBJECT_ENABLED], image[slot + offsets.OBJECT_ID] = 1, TREASURE
    assert Decoder(EVERYTHING).begin(bytes(image)).pickups == ()

    image[slot + offsets.OBJECT_STATE] = 8
    assert len(Decoder(EVERYTHING).begin(bytes(image)).pickups) == 1


def test_bytes_that_are_no_room_flags_do_not_count_as_progress() -> None:
    image = bytearray(IMAGE_SIZE)
    image[offsets.ROOM_FLAGS_OVERWORLD + 0x1F0 : offsets.ROOM_FLAGS_OVERWORLD + 0x200] = b"\xff" * 16  # rupees taken
    image[offsets.ROOM_FLAGS_OVERWORLD + 0x12] = 0x08  # a portal
    image[offsets.ROOM_FLAGS_OVERWORLD + 0x125] = 0x08  # one of Subrosia
    progress = Decoder(EVERYTHING).begin(bytes(image)).progress
    assert (progress.rooms_visited, progress.items_taken, progress.doors_opened, progress.events) == (0, 0, 0, 0)
    image[offsets.ROOM_FLAGS_OVERWORLD + 0x206] = 0x08 | 0x10 | 0x20  # a room of a dungeon
    progress = Decoder(EVERYTHING).begin(bytes(image)).progress
    assert (progress.rooms_visited, progress.items_taken, progress.doors_opened, progress.events) == (1, 1, 1, 0)


def test_cave_door_counts_where_oracle_has_subrosia() -> None:
    image = bytearray(IMAGE_SIZE)
    image[offsets.ROOM_FLAGS_OVERWORLD + 0x108] = 0x08
    assert Decoder(capabilities.BRAMBLE).begin(bytes(image)).progress.doors_opened == 1


@pytest.mark.parametrize(("floor", "right"), [(0, 0x10), (3, 0x10), (4, None), (7, None)])
def test_neighbours_on_an_unmapped_floor_are_unknown(floor: int, right: int | None) -> None:
    image = bytearray(IMAGE_SIZE)
    image[offsets.TILESET_FLAGS], image[offsets.ACTIVE_GROUP], image[offsets.DUNGEON_FLOOR] = 0x08, 4, floor
    image[offsets.DUNGEON_LAYOUT : offsets.DUNGEON_LAYOUT + 256] = b"\x06" * 256
    image[offsets.ROOM_FLAGS_OVERWORLD + 0x206] = 0x10
    assert Decoder(EVERYTHING).begin(bytes(image)).neighbours[1] == right


@pytest.mark.parametrize("has", [EVERYTHING, capabilities.BRAMBLE])
def test_hero_moved_by_a_script_is_not_in_control(has: frozenset[str]) -> None:
    image = bytearray(IMAGE_SIZE)
    in_play = {
        offsets.GAME_STATE: 2,
        offsets.CUTSCENE_INDEX: 1,
        offsets.SCROLL_MODE: 1,
        offsets.LINK_STATE: 1,
        offsets.HEALTH: 12,
    }
    for place, value in in_play.items():
        image[place] = value
    assert Decoder(has).begin(bytes(image)).control
    image[offsets.SIMULATED_INPUT] = 1
    assert Decoder(has).begin(bytes(image)).control == ("oracle" not in has)


def test_engine_writes_every_variable_that_bramble_declares() -> None:
    """A capability without any variable in the engine's source would make zeros look like knowledge."""
    from shared.game.generate import ROOT

    engine = ROOT / "bramble" / "engine"
    source = "\n".join(path.read_text() for path in [*engine.glob("*.c"), engine / "game.h"])
    for capability in capabilities.BRAMBLE - capabilities.CORE:
        names = [entry.name for entry in variables.entries().values() if entry.capability == capability]
        assert any(name in source for name in names), capability


def test_unknown_rom_is_refused_with_its_hash_and_the_known_one() -> None:
    with pytest.raises(
        UnknownRom, match=f"unknown ROM with MD5 d41d8cd98f00b204e9800998ecf8427e: use the one with MD5 {ORACLE_MD5}"
    ):
        identify_rom(b"")


def test_game_without_its_rom_is_refused() -> None:
    with pytest.raises(UnknownRom, match="oracle-of-seasons needs your own ROM image"):
        GAMES.open("oracle-of-seasons")
    with pytest.raises(UnknownRom, match="unknown game 'tetris': use bramble or oracle-of-seasons"):
        GAMES.open("tetris")


def test_bramble_worlds_are_games_with_milestones() -> None:
    game = bramble_game("vale")

    assert game.name == "bramble:vale"
    assert len(game.milestones) >= 5
    assert game.reached(bytes(IMAGE_SIZE)) == 0
