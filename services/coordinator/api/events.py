"""The live stream of one run as server-sent events. It wants the token in the header: fetch() can, EventSource not."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from services.coordinator.adapters.feed import News
from services.coordinator.api.access import Access, Run
from services.coordinator.api.auth import ADMITTED

router = APIRouter(tags=["live"])
KEEP_ALIVE_S: Final = 10.0  # proxies close a silent stream after about half a minute


@router.get(
    "/runs/{run}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"example": "event: progress\ndata: {...}\n\n"}}}},
)
async def follow_run(desk: Access, run: Run, request: Request) -> StreamingResponse:
    """Events `run`, `progress`, `epoch` and `score` with the documents of those names; what is known comes first."""
    await desk.runs.latest(run)
    lines = stream(desk.feed.follow(run), request.scope[ADMITTED])
    return StreamingResponse(lines, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def stream(news: AsyncGenerator[News, None], admitted: Callable[[], bool]) -> AsyncIterator[str]:
    """News as lines of the event stream, with a comment when there is none for a while. It ends with its token."""
    upcoming = asyncio.ensure_future(anext(news))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=KEEP_ALIVE_S)
            if not admitted():
                return
            if not done:
                yield ": nothing new\n\n"
                continue
            item = upcoming.result()
            yield f"event: {item.kind}\ndata: {item.data}\n\n"
            upcoming = asyncio.ensure_future(anext(news))
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)
        await news.aclose()
