"""Asks a judge about one pair in both orders, and commits the outcome: one object per pair, created once."""

from datetime import UTC, datetime
from typing import Any, Final

from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.ledger_rows import PairRow
from services.judge.domain.pair_votes import Weighing, soft_label
from services.judge.service.epoch_ledger import EpochLedger
from services.judge.service.judge import Judge
from services.judge.service.loader import SegmentLoader
from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import RunId
from shared.contracts.judging.pairs import OrderAnswer, PairComparison, SelectedPair
from shared.contracts.scores import Usage
from shared.errors import Permanent
from shared.llm.budget import add
from shared.process.bounded_cache import BoundedCache
from shared.process.failpoints import failpoint
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import Store

NOTHING: Final = Usage()
MAX_HALF_ANSWERED: Final = 1_000  # pairs whose route failed after the first order


class PairComparer:
    """Compares the selected pairs of one rubric version with one judge."""

    def __init__(self, store: Store, judge: Judge, loader: SegmentLoader, rubric: str) -> None:
        self._store, self._judge, self._loader, self._rubric = store, judge, loader, rubric
        # Paid answers about the first order: the repeat has the same seed, so to ask again would buy nothing.
        self._forward: BoundedCache[tuple[RunId, str, str], Weighing] = BoundedCache(MAX_HALF_ANSWERED)

    async def compare(self, pair: SelectedPair, ledger: EpochLedger, gap: float) -> None:
        """Ask about the pair and commit what was answered. `gap` is the difference of the scores, first minus second.

        Raises RouteUnavailable without an answer. A pair with an unreadable segment abstains.
        """
        try:
            first, second = await self._load(ledger.run, pair.first), await self._load(ledger.run, pair.second)
        except Permanent as error:
            await self.abstain(ledger.run, ledger.epoch, pair, str(error))
            return
        forward, backward = await self._weigh_both(first, second, ledger)
        usage = add(forward.usage, backward.usage)
        if forward.vote is None or backward.vote is None:
            reasons = [answer.reason for answer in (forward, backward) if answer.vote is None]
            await self.abstain(ledger.run, ledger.epoch, pair, *reasons, usage=usage)
            return
        answers = {"forward": _answer(forward), "backward": _answer(backward)}
        label = soft_label(forward.vote, backward.vote)
        facts = self._facts(ledger.run, ledger.epoch, pair, usage)
        if await self._commit({**facts, **answers, "status": "judged", "label": label}):
            # Another delivery has counted it otherwise.
            ledger.record(pair=PairRow(forward=forward.vote.choice, backward=backward.vote.choice, gap=gap))

    async def _weigh_both(
        self, first: JudgeInput, second: JudgeInput, ledger: EpochLedger
    ) -> tuple[Weighing, Weighing]:
        """Ask in both orders. If the second answer fails, the next call asks for that one alone."""
        pair = first.run, first.segment, second.segment
        forward = self._forward.get(pair) or await self._judge.weigh(first, second, ledger.budget)
        if forward.vote is not None:
            self._forward.put(pair, forward)
        backward = await self._judge.weigh(second, first, ledger.budget)
        self._forward.pop(pair)
        return forward, backward

    async def abstain(self, run: RunId, epoch: int, pair: SelectedPair, *reasons: str, usage: Usage = NOTHING) -> None:
        """Commit that the pair has no label, so that its epoch need not wait for one."""
        why = [reason[:500] for reason in dict.fromkeys(reasons)]
        await self._commit({**self._facts(run, epoch, pair, usage), "status": "abstained", "reasons": why})

    def _facts(self, run: RunId, epoch: int, pair: SelectedPair, usage: Usage) -> dict[str, Any]:
        spec = self._judge.spec
        return {
            "run": run,
            "epoch": epoch,
            "rubric": self._rubric,
            "pair": pair,
            "judge": spec.name,
            "route": spec.route or "in-process",
            "model": spec.model,
            "usage": usage,
            "created": datetime.now(UTC),
        }

    async def _commit(self, fields: dict[str, Any]) -> bool:
        """Create the outcome; False if another delivery was faster."""
        outcome = PairComparison.model_validate(fields)
        names = outcome.pair.first.segment, outcome.pair.second.segment
        key = keys.pair(outcome.run, outcome.epoch, *names, self._rubric)
        failpoint("judge.before_pair")
        return await create_if_absent(self._store, key, outcome.to_bytes())

    async def _load(self, run: RunId, segment: SegmentRef) -> JudgeInput:
        return (await self._loader.load(run, segment.segment, segment.key, segment.digest)).judge_input


def _answer(weighing: Weighing) -> OrderAnswer:
    assert weighing.vote is not None
    assert weighing.prompt is not None
    vote = weighing.vote
    return OrderAnswer(
        prompt=weighing.prompt,
        first=vote.first,
        equal=vote.equal,
        second=vote.second,
        reason=weighing.reason,
        kept=weighing.kept,
    )
