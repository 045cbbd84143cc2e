"""What routes depend on: the command service, the read models, the broadcaster, and the run id of the path."""

from typing import Annotated

from fastapi import Depends, Path, Request

from services.coordinator.api.dead_letter_service import DeadLetterService
from services.coordinator.api.run_service import RunService
from services.coordinator.live.broadcaster import EventBroadcaster
from services.coordinator.live.live_frames import LiveFrames
from services.coordinator.readmodels.read_models import ReadModels
from shared.contracts.ids import RunId


def run_service(request: Request) -> RunService:
    """The command service of the application."""
    service: RunService = request.app.state.service
    return service


def read_models(request: Request) -> ReadModels:
    """The read models of the application."""
    models: ReadModels = request.app.state.models
    return models


def broadcaster(request: Request) -> EventBroadcaster:
    """The broadcaster of the application."""
    found: EventBroadcaster = request.app.state.broadcaster
    return found


def dead_letters(request: Request) -> DeadLetterService:
    """The dead letters of the application's bus."""
    found: DeadLetterService = request.app.state.dead_letters
    return found


def live_frames(request: Request) -> LiveFrames:
    """The live pictures of the application."""
    found: LiveFrames = request.app.state.live_frames
    return found


Commands = Annotated[RunService, Depends(run_service)]
Models = Annotated[ReadModels, Depends(read_models)]
DeadLetterCommands = Annotated[DeadLetterService, Depends(dead_letters)]
Frames = Annotated[LiveFrames, Depends(live_frames)]
Broadcaster = Annotated[EventBroadcaster, Depends(broadcaster)]
RunParam = Annotated[RunId, Path(description="name of the run", examples=["first-steps"])]
