"""What every route asks for: the desk it works at, and the typed id in its path."""

from typing import Annotated

from fastapi import Depends, Path, Request

from services.coordinator.api.desk import Desk
from shared.contracts.ids import RunId


def desk(request: Request) -> Desk:
    """The desk that the application was made with."""
    found: Desk = request.app.state.desk
    return found


Access = Annotated[Desk, Depends(desk)]
Run = Annotated[RunId, Path(description="name of the run", examples=["first-steps"])]
