"""Pictures and videos of the game. Needs PyAV and Pillow."""

from pathlib import Path
from typing import Any

from bramble import catalog
from bramble.emulator import BrambleEmulator
from bramble.worlds.model import COLUMNS, ROWS, Cell, Room

SCALE = 3
STEPS_PER_SECOND = 15
SHEET_COLUMNS = 6
SHEET_GAP = 4
WIDTH, HEIGHT = 160, 144
SETTLE_STEPS = 14
PAPER = (12, 12, 24)


class VideoWriter:
    """Writes an H.264 video of a game, one picture per step.

    Append it to `BrambleEmulator.after_step` and call `close` at the end.
    """

    def __init__(self, path: Path) -> None:
        import av

        self._container = av.open(str(path), "w")
        self._stream: Any = self._container.add_stream("libx264", rate=STEPS_PER_SECOND)
        self._stream.width, self._stream.height = WIDTH * SCALE, HEIGHT * SCALE
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = {"crf": "20", "preset": "veryfast"}

    def __call__(self, game: BrambleEmulator) -> None:
        import av

        game.render = True
        picture = game.picture().repeat(SCALE, 0).repeat(SCALE, 1)
        for packet in self._stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
            self._container.mux(packet)

    def close(self) -> None:
        """Flush the encoder and close the file."""
        for packet in self._stream.encode():
            self._container.mux(packet)
        self._container.close()


def _standing_cell(room: Room) -> Cell:
    """The free cell nearest to the middle of a room: the hero stands there for the picture."""
    from bramble.worlds.check import tile_for

    taken = {obj.cell for obj in room.objects}
    cells = [(x, y) for y in range(ROWS) for x in range(COLUMNS)]
    free = [(x, y) for x, y in cells if (x, y) not in taken and not tile_for(room.rows[y][x]).solid]
    return min(free, key=lambda cell: abs(cell[0] - 4.5) + abs(cell[1] - 4.5))


def room_pictures(name: str) -> list[Any]:
    """A picture (uint8, 144 x 160 x 3) of every room of a world, ordered by group and number."""
    world = catalog.world(name)
    pictures = []
    with BrambleEmulator(catalog.build(name, difficulty="harmless")) as game:
        for room_id, room in sorted(world.rooms.items()):
            column, row = _standing_cell(room)
            for entry, value in (("group", room_id.group), ("room", room_id.room), ("pos", row << 4 | column)):
                game.write(f"warp_dest_{entry}", value)
            game.write("warp_trigger", 1)
            for _ in range(SETTLE_STEPS):
                game.step("nop")
            game.render = True
            game.step("nop")
            pictures.append(game.picture())
            game.render = False
            while game.value("text_active"):
                game.step("a")
                game.step("nop")
    return pictures


def contact_sheet(name: str, path: Path) -> int:
    """Write one PNG with all rooms of a world. Returns the number of rooms."""
    from PIL import Image

    pictures = room_pictures(name)
    columns = min(SHEET_COLUMNS, len(pictures))
    rows = -(-len(pictures) // columns)
    sheet = Image.new(
        "RGB", (columns * (WIDTH + SHEET_GAP) + SHEET_GAP, rows * (HEIGHT + SHEET_GAP) + SHEET_GAP), PAPER
    )
    for number, picture in enumerate(pictures):
        at = (
            (number % columns) * (WIDTH + SHEET_GAP) + SHEET_GAP,
            (number // columns) * (HEIGHT + SHEET_GAP) + SHEET_GAP,
        )
        sheet.paste(Image.fromarray(picture), at)
    sheet.quantize(128).save(path, optimize=True)
    return len(pictures)
