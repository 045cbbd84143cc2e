"""What an episode remembers beside the emulator's state: rooms and tiles seen, and the event counters.

A saved emulator state alone would begin a new episode: known rooms would count again. The memory travels with the state
as bytes: JSON, compressed.
"""

import zlib
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.config.problems import first_problem
from shared.errors import ContractError
from shared.game.decoding.state import RoomKey
from shared.game.observation.counters import NAMES, CounterMemory, EpisodeCounters, Switch
from shared.game.observation.trace import TILES, EpisodeTrace

LEVEL: Final = 1  # of compression: an exploration writes a memory for each new cell
MAX_BYTES: Final = 1_000_000  # of JSON; a memory of all 1,024 rooms has a fifth of it
_TO_DIGITS: Final = bytes((value + ord("0")) & 0xFF for value in range(256))
_TO_MARKS: Final = bytes((value - ord("0")) & 0xFF for value in range(256))

Marks = Annotated[str, Field(pattern=f"^[012]{{{TILES}}}$")]
Count = Annotated[int, Field(ge=0, le=0xFFFF)]


class EpisodeMemory(BaseModel):
    """The memory of one episode at one moment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    marks: list[tuple[RoomKey, Marks]]
    """Each room with its marks (unseen, seen, blocked) as digits, one per tile."""
    values: dict[str, Count]
    owned: list[int]
    texts: list[int]
    switched: list[Switch]
    dungeons: list[int | None]
    repeats: list[tuple[str, RoomKey, int]]

    @staticmethod
    def of(trace: EpisodeTrace, counters: EpisodeCounters) -> "EpisodeMemory":
        """The memory of a running episode."""
        marks = [(key, marks.translate(_TO_DIGITS).decode()) for key, marks in trace.memory().items()]
        return EpisodeMemory.model_construct(marks=marks, **counters.memory()._asdict())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Parse what `to_bytes` wrote. Raises ContractError for anything else."""
        try:
            unpacked = zlib.decompressobj().decompress(data, MAX_BYTES)
            memory = cls.model_validate_json(unpacked)
        except zlib.error as error:
            raise ContractError(f"an episode's memory of {len(data)} bytes is not compressed JSON: {error}") from error
        except ValidationError as error:
            raise ContractError(f"an episode's memory: {first_problem(error)}") from error
        if set(memory.values) != set(NAMES):
            raise ContractError("an episode's memory: values must have the counters of counters/v1")
        return memory

    def to_bytes(self) -> bytes:
        """The memory as compressed JSON."""
        return zlib.compress(self.model_dump_json().encode(), LEVEL)

    def restore(self, trace: EpisodeTrace, counters: EpisodeCounters) -> None:
        """Continue the remembered episode with a trace and counters that begin at the restored state."""
        trace.restore({key: marks.encode().translate(_TO_MARKS) for key, marks in self.marks})
        counters.restore(
            CounterMemory(self.values, self.owned, self.texts, self.switched, self.dungeons, self.repeats), trace
        )
