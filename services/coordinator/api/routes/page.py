"""Routes of the live page's files."""

from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from services.coordinator.api.versions import is_known
from services.coordinator.live.page_files import SECURITY_POLICY, PageFile, page_files


def install_page(app: FastAPI) -> None:
    """Serve every file of the page."""
    for path, file in page_files().items():
        app.add_api_route(path, _route(file), include_in_schema=False)


def _route(file: PageFile) -> Any:
    headers = {"Content-Security-Policy": SECURITY_POLICY, "ETag": file.etag, "Cache-Control": "no-cache"}

    async def page(request: Request) -> Response:
        if is_known(request, file.etag):
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    return page
