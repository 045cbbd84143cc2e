"""What routes depend on: command service, read models, broadcaster, logs, the token's role, the run id of the path."""

from typing import Annotated

from fastapi import Depends, Path, Request

from services.coordinator.api.auth import ROLE
from services.coordinator.api.dead_letter_service import DeadLetterService
from services.coordinator.api.problems import OperatorsOnly
from services.coordinator.api.run_service import RunService
from services.coordinator.live.broadcaster import EventBroadcaster
from services.coordinator.live.live_frames import LiveFrames
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.readmodels.service_logs import ServiceLogs
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


def service_logs(request: Request) -> ServiceLogs | None:
    """The logs that the application may show; None on a cluster."""
    found: ServiceLogs | None = request.app.state.logs
    return found


def require_operator(request: Request) -> None:
    """Refuse a viewer's token, for what only operators may read."""
    if request.scope[ROLE] != "operator":
        raise OperatorsOnly("This token may not read logs: use an operator's token.")


Commands = Annotated[RunService, Depends(run_service)]
Models = Annotated[ReadModels, Depends(read_models)]
DeadLetterCommands = Annotated[DeadLetterService, Depends(dead_letters)]
Frames = Annotated[LiveFrames, Depends(live_frames)]
Logs = Annotated[ServiceLogs | None, Depends(service_logs)]
Broadcaster = Annotated[EventBroadcaster, Depends(broadcaster)]
RunParam = Annotated[RunId, Path(description="name of the run", examples=["first-steps"])]


async def existing_run(models: Models, run: RunParam) -> RunId:
    """The run of the path, or NotFound: caches may still hold what a deleted run recorded."""
    await models.runs.latest(run)
    return run


ExistingRun = Annotated[RunId, Depends(existing_run)]
