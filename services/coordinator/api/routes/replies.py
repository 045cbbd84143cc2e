"""The route that shows what a judge was asked and what it replied, word for word."""

from typing import Annotated

from fastapi import APIRouter, Path

from services.coordinator.api.dependencies import Models, RunParam
from services.coordinator.readmodels.judge_replies import KeptReplies
from shared.contracts.ids import Digest

router = APIRouter(tags=["records"])


@router.get("/runs/{run}/replies/{prompt}")
async def show_replies(
    models: Models, run: RunParam, prompt: Annotated[Digest, Path(description="`prompt` of a judge's result")]
) -> KeptReplies:
    """Show a prompt and all replies to it, where the judge service keeps them (`ZELDA_JUDGE__KEEP_REPLIES`)."""
    await models.runs.latest(run)
    return await models.replies.read(run, prompt)
