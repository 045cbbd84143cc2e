"""A route trusts a server with a certificate of the authority that it names, and of no other."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from shared.llm.client_pool import ClientPool
from shared.llm.route_spec import RouteSpec
from tests.certificates import certificate
from tests.tcp_server import serve_tcp


async def list_no_model(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]")
    await writer.drain()


@asynccontextmanager
async def encrypted_server(authority: Path) -> AsyncIterator[str]:
    """A model server with this certificate, whose key is beside it. Yields its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, authority.with_name("tls.key"))
    async with serve_tcp(list_no_model, context) as port:
        yield f"https://127.0.0.1:{port}/v1"


async def asked(url: str, authority: Path | None) -> tuple[int, bytes]:
    """Status and body of an answer over a route that trusts this authority; None: those of the system."""
    pool = ClientPool(RouteSpec.model_validate({"url": url, "ca_file": authority}), use_direct=False)
    try:
        status, _, body = await pool.exchange("GET", "/models", {})
    finally:
        await pool.close()
    return status, body


def authority_in(folder: Path) -> Path:
    folder.mkdir()
    return certificate(folder)


async def test_a_route_trusts_the_authority_that_it_names(tmp_path: Path) -> None:
    async with encrypted_server(certificate(tmp_path)) as url:
        assert await asked(url, tmp_path / "tls.crt") == (200, b"[]")


@pytest.mark.parametrize("named", [True, False], ids=["another's", "the system's"])
async def test_a_route_sends_nothing_to_a_server_of_another_authority(tmp_path: Path, named: bool) -> None:
    other = authority_in(tmp_path / "other") if named else None
    async with encrypted_server(authority_in(tmp_path / "server")) as url:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await asked(url, other)
