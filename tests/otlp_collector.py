"""An OpenTelemetry collector inside a test: it receives spans over HTTP and keeps them."""

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class OtlpCollector:
    """The received spans, by service."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Span]] = []
        self.port = 0

    @property
    def url(self) -> str:
        """The base address, as `tracing.endpoint` takes it."""
        return f"http://127.0.0.1:{self.port}"

    def receive(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = str(values(group.resource.attributes)["service.name"])
            self.spans += [(service, span) for scope in group.scope_spans for span in scope.spans]

    def wait_for(self, number: int, seconds: float = 30) -> list[Span]:
        """So many spans, oldest first."""
        deadline = time.monotonic() + seconds
        while len(self.spans) < number:
            assert time.monotonic() < deadline, self.spans
            time.sleep(0.05)
        return sorted((span for _, span in self.spans), key=lambda span: span.start_time_unix_nano)


def values(attributes: object) -> dict[str, str | int]:
    """The attributes of a span or a resource; texts and whole numbers only."""
    found: dict[str, str | int] = {}
    for one in attributes:  # type: ignore[attr-defined]
        assert isinstance(one, KeyValue)
        found[one.key] = one.value.string_value if one.value.HasField("string_value") else one.value.int_value
    return found


@contextmanager
def otlp_collector() -> Iterator[OtlpCollector]:
    """A collector on a free port."""
    collector = OtlpCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            known = self.path == "/v1/traces"
            if known:
                collector.receive(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
            self.send_response(200 if known else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
