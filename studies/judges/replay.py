"""Makes the bank's segments again, as judges see them."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from services.judge.domain.judge_input import JudgeInput
from services.judge.service.loader import LoadedSegment, SegmentLoader
from services.trainer.recording.builder import CompletedSegment
from shared.contracts.ids import Digest, SegmentId
from shared.store.memory import MemoryStore
from studies.judges.bank import Bank, BankError, BankSegment
from studies.judges.play import Course, play_actions, record


def replayed(bank: Bank, wanted: Sequence[BankSegment]) -> dict[str, CompletedSegment]:
    """Play one episode again; return its `wanted` segments by name.

    Raises BankError if the game takes another course than when the bank was made.
    """
    episode = bank.episodes[wanted[0].episode]
    _, segments = record(episode.world, episode.seed, play_actions(episode.actions))
    by_index = {segment.content.index: segment for segment in segments}
    found: dict[str, CompletedSegment] = {}
    for one in wanted:
        segment = by_index.get(one.index)
        if segment is None or Course.of(segment).digest != one.digest:
            raise BankError(
                f"segment {one.name} of {episode.world} takes another course than when the bank was made: the world, "
                "the game or the emulator has changed; make the bank again with python -m studies.judges.make_bank"
            )
        found[one.name] = segment
    return found


class BankReplay:
    """Replays episodes when a segment of theirs is first needed, and keeps what judges see of it."""

    def __init__(self, bank: Bank, loader: SegmentLoader, store: MemoryStore) -> None:
        """`loader` reads from `store`, which holds an archive only while it is parsed."""
        self._bank, self._loader, self._store = bank, loader, store
        self._loaded: dict[str, LoadedSegment] = {}
        self._wanted: dict[int, list[BankSegment]] = defaultdict(list)
        for segment in bank.segments:
            self._wanted[segment.episode].append(segment)

    async def load(self, segment: BankSegment) -> LoadedSegment:
        """Return the segment. Raises BankError if the game takes another course than when the bank was made."""
        if segment.name not in self._loaded:
            wanted = self._wanted[segment.episode]
            for one, recorded in (await asyncio.to_thread(replayed, self._bank, wanted)).items():
                self._loaded[one] = await self._parse(one, recorded)
        return self._loaded[segment.name]

    async def _parse(self, name: str, segment: CompletedSegment) -> LoadedSegment:
        digest = Digest(await self._store.put(segment.key, segment.archive("share")))
        loaded = await self._loader.load(segment.facts["run"], segment.name, segment.key, digest)
        await self._store.delete(segment.key)
        return replace(loaded, judge_input=_named(loaded.judge_input, name))


def _named(judge_input: JudgeInput, name: str) -> JudgeInput:
    """The same input under the bank's name: every episode names its segments alike."""
    return replace(judge_input, segment=SegmentId(name))
