"""Routes that read and write the notes and tags of a run."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from services.coordinator.api.dependencies import Commands, Models, RunParam
from shared.contracts.ids import Tag
from shared.contracts.progress import MAX_TAGS, RunNotes

router = APIRouter(tags=["notes"])


class NewNotes(BaseModel):
    """The note and the tags of a run; both replace the former ones."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"note": "doubled the entropy", "tags": ["baseline"]}]}
    )

    note: str = Field("", max_length=4_000, description="any text")
    tags: list[Tag] = Field(default_factory=list, max_length=MAX_TAGS)


@router.get("/runs/{run}/notes")
async def show_notes(models: Models, run: RunParam) -> RunNotes:
    """Show the note and the tags of a run; both are empty until someone writes them."""
    await models.runs.latest(run)
    return await models.notes.read(run)


@router.put("/runs/{run}/notes")
async def write_notes(commands: Commands, run: RunParam, request: NewNotes) -> RunNotes:
    """Replace the note and the tags of a run. Its record stays as it is; the last writer wins."""
    return await commands.write_notes(run, request.note, request.tags)
