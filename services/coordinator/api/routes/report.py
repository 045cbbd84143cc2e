"""The route that renders the report of a run, as `zelda report` does."""

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from services.coordinator.api.dependencies import Commands, Models, RunParam
from services.coordinator.report.data import collect_report_data
from services.coordinator.report.page import render_report

router = APIRouter(tags=["runs"])


@router.get(
    "/runs/{run}/report",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}, "description": "one HTML file that needs no server"}},
)
async def download_report(commands: Commands, models: Models, run: RunParam) -> Response:
    """Download the report of a run as one HTML file: verdict, videos, epochs, charts, judges, map, configuration.

    It shows the finished epochs; the summary of a new run appears within seconds.
    """
    await models.runs.latest(run)
    data = await collect_report_data(commands.store, run)
    page = await asyncio.to_thread(render_report, data)
    return Response(page, media_type="text/html", headers={"Content-Disposition": f'attachment; filename="{run}.html"'})
