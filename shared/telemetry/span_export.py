"""Sends spans to an OpenTelemetry collector, in the background and in batches.

A collector that is away costs spans, nothing else: they are counted, and the reason is logged once.
"""

import logging
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from shared.config.settings import TracingSettings
from shared.telemetry import metrics
from shared.telemetry.log_once import LogOnce

EXPORT_S: Final = 5.0  # to send one batch, with all attempts; it may delay the end of a process
PATH: Final = "/v1/traces"  # of spans, below a collector's address
LIBRARY: Final = "opentelemetry.exporter"  # its loggers

LOST: Final = metrics.counter("tracing_lost_spans_total", "spans that the collector did not take")
log = structlog.get_logger(__name__)


def provider(service: str, settings: TracingSettings, endpoint: str) -> TracerProvider:
    """A provider that sends a share of all traces to `endpoint`."""
    made = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.sample_ratio)),
        resource=Resource.create({"service.name": f"zelda-{service}", "service.version": version("zelda-rlaif")}),
    )
    authority = None if settings.ca_file is None else str(settings.ca_file)
    base = endpoint.rstrip("/").removesuffix(PATH)
    exporter = OTLPSpanExporter(f"{base}{PATH}", certificate_file=authority, timeout=EXPORT_S)
    made.add_span_processor(BatchSpanProcessor(ObservedExporter(exporter)))
    return made


class ObservedExporter(SpanExporter):
    """Counts the spans that the exporter loses, and replaces its log lines, several a batch, by one of each kind."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._problems: LogOnce[str] = LogOnce(log.warning, "spans not sent")
        # A filter sees only what its own logger was called for: each of the library's loggers gets one.
        names = [name for name in logging.root.manager.loggerDict if f"{name}.".startswith(f"{LIBRARY}.")]
        self._loggers = [logging.getLogger(name) for name in names]
        for logger in self._loggers:
            logger.addFilter(self._take_over)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._problems.keep_only(())
        else:
            LOST.inc(len(spans))
        return result

    def shutdown(self) -> None:
        """End; running attempts end as well."""
        self._exporter.shutdown()
        for logger in self._loggers:
            logger.removeFilter(self._take_over)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what the exporter holds."""
        return self._exporter.force_flush(timeout_millis)

    def _take_over(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            self._problems.report(record.levelname, record.getMessage())
        return False
