"""All judges on one segment, at once. One slow or absent route holds up its own part only."""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from services.judge.briefing import Clip
from services.judge.config import JudgeSpec
from services.judge.domain.budget import Ledger
from services.judge.juror import Juror
from services.judge.ports import RouteUnavailable
from shared.contracts.ids import Digest
from shared.contracts.scores import JudgeResult


@dataclass(frozen=True, slots=True)
class Verdict:
    """Results of the judges that gave one, and for the others why their route gave nothing.

    `silent_s` says how long none of the absent ones' routes has answered anything.
    """

    results: tuple[JudgeResult, ...]
    absent: dict[str, str]
    silent_s: float = math.inf


class Panel:
    """The judges of this process."""

    def __init__(self, jurors: Sequence[Juror]) -> None:
        self.jurors = tuple(jurors)

    async def judge(self, clip: Clip, ledger: Ledger, known: Sequence[JudgeResult] = ()) -> Verdict:
        """Ask every judge that is not among `known` results; an absent route is reported, not raised."""
        done = {result.judge: result for result in known}
        asked = [juror for juror in self.jurors if juror.spec.name not in done]
        outcomes = await _all_heard([_heard(juror, clip, ledger) for juror in asked])
        absent, silent_s = {}, math.inf
        for juror, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, RouteUnavailable):
                absent[str(juror.spec.name)] = str(outcome)
                silent_s = min(silent_s, juror.silent_s())
            else:
                done[juror.spec.name] = outcome
        order = [juror.spec.name for juror in self.jurors]
        return Verdict(tuple(done[name] for name in order if name in done), absent, silent_s)

    def without(self, results: Sequence[JudgeResult], reason: str) -> Verdict:
        """The verdict when only these judges gave a result, and nobody asks the others any more."""
        done = {result.judge for result in results}
        return Verdict(tuple(results), {str(j.spec.name): reason for j in self.jurors if j.spec.name not in done})

    def results(self, verdict: Verdict) -> list[JudgeResult]:
        """The results of all judges; an absent one abstains."""
        specs = {str(juror.spec.name): juror.spec for juror in self.jurors}
        return [*verdict.results, *(_absent(specs[name], why) for name, why in verdict.absent.items())]


async def _all_heard(
    hearings: Sequence[Coroutine[None, None, JudgeResult | RouteUnavailable]],
) -> list[JudgeResult | RouteUnavailable]:
    """All outcomes. If one raises, the others end with it: nobody would keep what they say, nor book what they cost."""
    tasks = [asyncio.create_task(hearing) for hearing in hearings]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _heard(juror: Juror, clip: Clip, ledger: Ledger) -> JudgeResult | RouteUnavailable:
    try:
        return await juror.judge(clip, ledger)
    except RouteUnavailable as error:
        return error


def _absent(spec: JudgeSpec, reason: str) -> JudgeResult:
    """A judge whose route stayed away for longer than anybody wants to wait: abstained, with the reason."""
    return JudgeResult(
        judge=spec.name,
        route=spec.route or "in-process",
        model=spec.model,
        prompt=Digest("0" * 64),
        status="abstained",
        reasons=[reason[:500]],
    )
