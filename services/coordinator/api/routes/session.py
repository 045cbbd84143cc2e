"""What the token of a request allows: pages hide the actions that it does not."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from services.coordinator.api.auth import ROLE
from services.coordinator.api.tokens import Role

router = APIRouter(tags=["session"])


class TokenSession(BaseModel):
    """The rights of one token."""

    role: Role = Field(description="`viewer` reads, `operator` also changes runs")


@router.get("/session")
async def show_session(request: Request) -> TokenSession:
    """Show the role of the request's token."""
    return TokenSession(role=request.scope[ROLE])
