"""A memory store that checks each write: what a commit object names exists, and no commit object ever changes."""

import re
from collections.abc import Callable
from typing import Final

from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.contracts.scores import SegmentScores
from shared.store import keys
from shared.store.memory import MemoryStore

RUN: Final = RunId("sim")
COMMITS: Final = re.compile(
    rf"models/runs/{RUN}/record/.*|models/runs/{RUN}/epochs/.*|models/runs/{RUN}/reward_model/[^/]+/(card\.json|rm-.*)"
    rf"|models/runs/{RUN}/driver/(stopped|failed)-.*|episodes/scores/{RUN}/[^/]+/default/.*|episodes/episodes/{RUN}/.*"
)
NEXT_STATES: Final = {
    "created": {"running", "stopped", "failed"},
    "running": {"running", "stopping", "finished", "failed"},
    "stopping": {"stopping", "stopped", "finished", "failed"},
    "stopped": {"running"},
    "finished": set[str](),
    "failed": {"running"},
}
"""Of a run, written down here again: a table that the services share could hide its own error."""


class CheckedStore(MemoryStore):
    """`violations` lists every wrong write. `recorded` maps each archive ever written to its SHA-256.

    `damaged_unnoted` holds the digests of archives that were damaged before their digest was noted: nothing shows the
    damage, and the announcer hashes what is there.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.violations: list[str] = []
        self.recorded: dict[str, str] = {}
        self.damaged_unnoted: set[tuple[str, str]] = set()

    async def put(self, key: str, data: bytes) -> str:
        """Write and check."""
        if COMMITS.fullmatch(key):
            self._check(key, data)
        return await super().put(key, data)

    async def delete(self, key: str) -> None:
        """Remove and check."""
        if COMMITS.fullmatch(key) and keys.deleted_run(RUN) not in self._objects and key in self._objects:
            self.violations.append(f"{key} was deleted, and its run was not")
        await super().delete(key)

    def content(self, key: str) -> bytes | None:
        """The bytes of an object, or None."""
        return self._objects[key][0] if key in self._objects else None

    def keys_below(self, prefix: str) -> list[str]:
        """The keys that start with a prefix, sorted."""
        return sorted(key for key in self._objects if key.startswith(prefix))

    def corrupt(self, key: str) -> None:
        """Flip a bit of an archive."""
        data, modified = self._objects[key]
        data = bytes([data[0] ^ 1]) + data[1:]
        self._objects[key] = (data, modified)
        if key not in keys.noted_digests(self.keys_below(key)):
            self.damaged_unnoted.add((key, sha256(data)))

    def _check(self, key: str, data: bytes) -> None:
        before = self.content(key)
        if before is not None and before != data:
            self.violations.append(f"{key} was changed")
        if key.endswith(".zip"):
            self.recorded[key] = sha256(data)
        elif key.endswith("start.json"):
            self._check_order(EpochStart.from_bytes(data))
        elif key.endswith("finished.json"):
            self._check_finished(EpochFinishedRecord.from_bytes(data))
        elif key.endswith("card.json"):
            self._check_card(RewardModelCard.from_bytes(data))
        elif key.startswith(keys.run_record_prefix(RUN)):
            self._check_record(RunRecord.from_bytes(data))
        elif key.startswith("episodes/scores/"):
            self._check_score(SegmentScores.from_bytes(data))

    def _check_order(self, order: EpochStart) -> None:
        if order.epoch:
            before = self.content(keys.epoch_start(RUN, order.epoch - 1))
            if before is None or keys.epoch_finished(RUN, order.epoch - 1) not in self._objects:
                self.violations.append(f"epoch {order.epoch} was ordered before the end of the epoch before")
            elif EpochStart.from_bytes(before).fence > order.fence:
                self.violations.append(f"the fence of epoch {order.epoch} is lower than that of the epoch before")
        model = order.reward_model
        if model is not None:
            for key, digest in ((model.card_key, model.card_digest), (model.weights_key, model.weights_digest)):
                if sha256(self.content(key) or b"") != digest:
                    self.violations.append(f"epoch {order.epoch} names {key}, which does not have its digest")

    def _check_finished(self, finished: EpochFinishedRecord) -> None:
        names = [one.segment for one in finished.segments]
        if len(set(names)) != len(names):
            self.violations.append(f"epoch {finished.epoch} lists a segment twice")
        for one in finished.segments:
            if self.recorded.get(one.key) != one.digest:
                self.violations.append(f"epoch {finished.epoch} lists {one.segment}, which was not recorded")

    def _check_card(self, card: RewardModelCard) -> None:
        if sha256(self.content(card.weights_key) or b"") != card.weights_digest:
            self.violations.append(f"the card of epoch {card.epoch} names weights that do not exist")
        judged = sum(
            SegmentScores.from_bytes(self.content(key) or b"").status == "judged"
            for epoch in range(card.epoch + 1)
            for key in self.keys_below(keys.scores_prefix(RUN, epoch))
        )
        if card.segments > judged:
            self.violations.append(f"the card of epoch {card.epoch} uses {card.segments} segments of {judged} judged")

    def _check_record(self, record: RunRecord) -> None:
        if record.revision == 0:
            return
        raw = self.content(keys.run_revision(RUN, record.revision - 1))
        if raw is None:
            self.violations.append(f"revision {record.revision} of the record has no predecessor")
            return
        before = RunRecord.from_bytes(raw)
        if record.state not in NEXT_STATES[before.state]:
            self.violations.append(f"the run was {before.state} and became {record.state}")
        if record.epoch < before.epoch:
            self.violations.append(f"the record returned from epoch {before.epoch} to epoch {record.epoch}")

    def _check_score(self, scores: SegmentScores) -> None:
        judged = scores.segment_key, scores.segment_digest
        if self.recorded.get(scores.segment_key) != scores.segment_digest and judged not in self.damaged_unnoted:
            self.violations.append(f"{scores.segment} has a score and was never recorded")
