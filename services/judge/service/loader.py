"""Loads a segment from the store and derives what the judges see: facts, phase and key frames."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from services.judge.adapters.segment_archive import SegmentRecording, read_archive
from services.judge.config import PhasesFile
from services.judge.domain.facts.summary import compute_facts
from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.phases import Phase, select_phase
from shared.contracts.ids import Digest, RunId, SegmentId
from shared.contracts.segment import SegmentManifest
from shared.errors import ContractError
from shared.store.port import Store


@dataclass(frozen=True, slots=True)
class LoadedSegment:
    """A segment ready to be judged. The manifest holds the true milestones: it must not reach a prompt."""

    judge_input: JudgeInput
    manifest: SegmentManifest
    phase: Phase


class SegmentLoader:
    """Loads segments. `frames` says whether any judge uses key frames."""

    def __init__(self, store: Store, phases: PhasesFile, *, frames: bool) -> None:
        self._store, self._phases, self._frames = store, phases, frames
        self._parser = asyncio.Semaphore(1)  # more threads would starve the event loop of the interpreter lock

    async def load(self, run: RunId, segment: SegmentId, key: str, digest: Digest) -> LoadedSegment:
        """Read and parse the segment. Raises Permanent if it is missing, damaged or another segment."""
        raw = await self._store.get(key, digest)
        async with self._parser:
            return await asyncio.to_thread(self._parse, raw, run, segment)

    def _parse(self, raw: bytes, run: RunId, segment: SegmentId) -> LoadedSegment:
        recording = read_archive(raw, frames=self._frames)
        manifest = recording.manifest
        if (manifest.run, manifest.segment) != (run, segment):
            raise ContractError(
                f"the archive holds segment {manifest.segment} of run {manifest.run}, not {segment} of {run}"
            )
        return self._loaded(recording)

    def _loaded(self, recording: SegmentRecording) -> LoadedSegment:
        manifest = recording.manifest
        phase = select_phase(self._phases.phases, manifest.game, recording.states[-1])
        names = self._room_names(manifest.game)
        facts = compute_facts(manifest.game, manifest.frame_skip, recording.states, names, recording.before)
        judge_input = JudgeInput(manifest.run, manifest.segment, facts, phase.guidance, tuple(recording.frames))
        return LoadedSegment(judge_input, manifest, phase)

    def _room_names(self, game: str) -> Mapping[str, str]:
        for pattern, names in self._phases.places.items():
            if fnmatchcase(game, pattern):
                return names
        return {}
