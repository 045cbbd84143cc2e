"""The route that shows what one environment of a run does now."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from services.coordinator.api.dependencies import Frames, RunParam
from shared.contracts.driver import LiveFrame

router = APIRouter(tags=["play"])


class LiveNow(BaseModel):
    """The newest picture of one environment, with the state of its game."""

    frame: LiveFrame | None = Field(None, description="null for an ended run, and in the first seconds of watching")
    age_s: float | None = Field(None, description="seconds since the frame changed, or since the first request")


@router.get("/runs/{run}/now")
async def show_now(frames: Frames, run: RunParam) -> LiveNow:
    """Show a live picture of one environment, about twice a second. Each request keeps an env runner drawing for ten
    seconds."""
    frame, age_s = await frames.newest(run)
    return LiveNow(frame=frame, age_s=age_s)
