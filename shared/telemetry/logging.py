"""Structured logs on standard error: one event per line, a constant message, all variable data in fields.

While an event is handled, every line carries its run, epoch, segment, id and delivery number. Never log payloads or
secrets. Fields are cut at `MAX_FIELD_LENGTH` characters, so that no reply or state floods the log.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

import structlog

from shared.config.settings import LogSettings

MAX_FIELD_LENGTH: Final = 2_000  # characters of one field; tracebacks are exempt


def setup_logging(service: str, settings: LogSettings) -> None:
    """Send the lines of structlog and of all libraries through one renderer. Call once, before anything logs."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=_SHARED, processors=_renderers(service, settings))
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("httpx", "httpcore", "uvicorn", "asyncio"):
        logging.getLogger(chatty).setLevel(max(level, logging.WARNING))


def _shorten(_: Any, __: str, fields: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {name: _cut(value) if name not in ("exception", "stack") else value for name, value in fields.items()}


def _cut(value: Any) -> Any:
    return value[:MAX_FIELD_LENGTH] + "…" if isinstance(value, str) and len(value) > MAX_FIELD_LENGTH else value


_SHARED: Final[list[structlog.typing.Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    _shorten,
]


def _renderers(service: str, settings: LogSettings) -> list[structlog.typing.Processor]:
    def name_service(_: Any, __: str, fields: structlog.typing.EventDict) -> Mapping[str, Any]:
        return {"service": service, **fields}

    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.format == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    return [structlog.stdlib.ProcessorFormatter.remove_processors_meta, name_service, last]
