"""From a segment in the store to what the judges are told: archive, facts, phase and key frames."""

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
    """A segment ready to be judged. The manifest holds the truth about milestones: it must not reach a prompt."""

    judge_input: JudgeInput
    manifest: SegmentManifest
    phase: Phase


class SegmentLoader:
    """Loads segments. `frames` says whether any judge looks at pictures."""

    def __init__(self, store: Store, phases: PhasesFile, *, frames: bool) -> None:
        self._store, self._phases, self._frames = store, phases, frames

    async def load(self, run: RunId, segment: SegmentId, key: str, digest: Digest) -> LoadedSegment:
        """Read and parse the segment; anything wrong with it is Permanent."""
        raw = await self._store.get(key, digest)
        return await asyncio.to_thread(self._loaded, raw, run, segment)

    def _loaded(self, raw: bytes, run: RunId, segment: SegmentId) -> LoadedSegment:
        recording = read_archive(raw, frames=self._frames)
        manifest = recording.manifest
        if (manifest.run, manifest.segment) != (run, segment):
            raise ContractError(
                f"the archive holds segment {manifest.segment} of run {manifest.run}, not {segment} of {run}"
            )
        return self._clip(recording)

    def _clip(self, recording: SegmentRecording) -> LoadedSegment:
        manifest = recording.manifest
        phase = select_phase(self._phases.phases, manifest.game, recording.states[-1])
        facts = compute_facts(manifest.game, manifest.frame_skip, recording.states, self._places(manifest.game))
        judge_input = JudgeInput(manifest.run, manifest.segment, facts, phase.guidance, tuple(recording.frames))
        return LoadedSegment(judge_input, manifest, phase)

    def _places(self, game: str) -> Mapping[str, str]:
        for pattern, names in self._phases.places.items():
            if fnmatchcase(game, pattern):
                return names
        return {}
