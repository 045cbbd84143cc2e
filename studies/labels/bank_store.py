"""The labelled segments of the bank in a store of the study: archives, and the scores of both judges.

They are recorded once, before the first trial; every trial trains its reward model on the same archives.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from services.judge.domain.vote_merge import unanimous_share
from services.judge.runtime import JudgeRuntime, rules_runtime
from services.trainer.recording.builder import CompletedSegment
from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.contracts.envelope import wrap
from shared.contracts.events import SegmentReady
from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.store import keys
from shared.store.create import create_if_absent, create_or_read
from shared.store.open import open_store
from shared.store.port import Store
from studies.judges.answers import Answer
from studies.judges.bank import Bank, BankSegment
from studies.judges.play import RUN
from studies.judges.replay import replayed
from studies.labels.votes import ModelVotes

RULES: Final = "rules"
MODEL: Final = "llm"
"""The rubric versions of the two judges' scores of the bank."""


def bank_store(folder: Path) -> Store:
    """Open the bank's store in the folder of a study."""
    return open_store(StoreSettings(url=f"file://{(folder / 'stores' / 'bank').absolute()}"))


def segment_id(segment: BankSegment) -> SegmentId:
    """Return the segment's name in the store, where names follow episodes as in a run."""
    return SegmentId(f"{_episode_id(segment.episode)}-s{segment.index:03d}")


def _episode_id(number: int) -> EpisodeId:
    return EpisodeId(f"e{number}")


async def record_bank(store: Store, bank: Bank, votes: ModelVotes, report: Callable[[int, int], None]) -> None:
    """Record the voted segments that the store lacks, with the scores of the model and of the rules judge.

    `report` receives how many segments are recorded, and of how many. Raises BankError if the game takes another course
    than when the bank was made.
    """
    wanted: dict[int, list[BankSegment]] = defaultdict(list)
    for segment in (one for segments in votes.segments.values() for one in segments):
        wanted[segment.episode].append(segment)
    judge, done = rules_runtime(store, RULES), 0
    for segments in wanted.values():
        missing = [one for one in segments if not await store.exists(keys.score(RUN, 0, segment_id(one), MODEL))]
        if missing:
            recorded = await asyncio.to_thread(replayed, bank, missing)
            for one in missing:
                await _record(store, judge, one, recorded[one.name], votes.answers[one.name])
        done += len(segments)
        report(done, len(votes.answers))


async def _record(
    store: Store, judge: JudgeRuntime, segment: BankSegment, recorded: CompletedSegment, answer: Answer
) -> None:
    """Write the archive and both scores. The model's score is the last: it says that the segment is complete."""
    named = replace(recorded, facts={**recorded.facts, "episode": _episode_id(segment.episode)})
    archive = await create_or_read(store, named.key, named.archive("share"))
    ready = SegmentReady(
        run=RUN,
        epoch=0,
        key=named.key,
        digest=Digest(sha256(archive.data)),
        episode=_episode_id(segment.episode),
        segment=named.name,
    )
    await judge.handlers.segment_ready(wrap(ready, source="study"))
    rules = SegmentScores.from_bytes(await store.get(keys.score(RUN, 0, named.name, RULES)))
    scores = rules.model_copy(
        update={
            "rubric": MODEL,
            "judges": answer.results,
            "weights": answer.weights,
            "weighted": answer.weighted,
            "agreement": unanimous_share(answer.results),
        }
    )
    await create_if_absent(store, keys.score(RUN, 0, named.name, MODEL), scores.to_bytes())


async def read_scores(store: Store, bank: Bank, world: str, rubric: str) -> list[SegmentScores]:
    """Return the recorded scores of one world's segments under a rubric version, in the order of the bank."""
    names = [segment_id(one) for one in bank.segments if bank.episodes[one.episode].world == world]
    listed = {entry.key for entry in await store.list(keys.scores_prefix(RUN, 0, rubric))}
    found = [key for name in names if (key := keys.score(RUN, 0, name, rubric)) in listed]
    return [SegmentScores.from_bytes(await store.get(key)) for key in found]
