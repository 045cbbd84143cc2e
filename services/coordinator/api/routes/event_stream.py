"""The live updates of one run as server-sent events.

The token comes in a header: browsers send it with fetch(), but cannot with EventSource.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from services.coordinator.api.auth import IS_AUTHORISED
from services.coordinator.api.dependencies import Broadcaster, Models, RunParam
from services.coordinator.live.broadcaster import RunUpdate

router = APIRouter(tags=["live"])
KEEP_ALIVE_S: Final = 10.0  # proxies close a silent stream after about 30 s


@router.get(
    "/runs/{run}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"example": "event: progress\ndata: {...}\n\n"}}}},
)
async def follow_run(models: Models, broadcaster: Broadcaster, run: RunParam, request: Request) -> StreamingResponse:
    """Stream events `run`, `progress`, `epoch` and `score`, each with its document. The current state comes first."""
    await models.runs.latest(run)
    lines = event_lines(broadcaster.follow(run), request.scope[IS_AUTHORISED])
    return StreamingResponse(lines, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def event_lines(
    updates: AsyncGenerator[RunUpdate, None], is_authorised: Callable[[], bool]
) -> AsyncIterator[str]:
    """Updates as event-stream text, with a comment every KEEP_ALIVE_S without one.

    Ends when the token is revoked, and when the run is deleted.
    """
    upcoming = asyncio.ensure_future(anext(updates))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=KEEP_ALIVE_S)
            if not is_authorised():
                return
            if not done:
                yield ": keep-alive\n\n"
                continue
            try:
                update = upcoming.result()
            except StopAsyncIteration:
                return
            yield f"event: {update.kind}\ndata: {update.data}\n\n"
            upcoming = asyncio.ensure_future(anext(updates))
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)
        await updates.aclose()
