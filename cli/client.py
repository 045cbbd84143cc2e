"""REST client of the coordinator. It finds a local system automatically; a remote one needs a URL and a token file."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cli.errors import CONFLICT, DENIED, FAILED, NOT_FOUND, UNREACHABLE, USAGE, CliError
from cli.stack.layout import Connection

if TYPE_CHECKING:
    import httpx

LOCAL_CONNECTION: Final = Path("runs/.local/connection.json")
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
ROLES: Final = ("viewer", "operator")
URL, TOKEN_FILE = "ZELDACLI_URL", "ZELDACLI_TOKEN_FILE"
LOGIN_PAGE_HINT: Final = (
    "bypass it with `kubectl port-forward svc/zelda-coordinator 8080` and --url http://127.0.0.1:8080 "
    "(docs/install-openshift.md)"
)
_NO_RUN: Final = re.compile(r"There is no run '(?P<run>[^']+)': see GET /runs")  # the coordinator's sentence
_EXIT_CODES: Final = {
    401: DENIED,
    403: DENIED,
    404: NOT_FOUND,
    409: CONFLICT,
    422: USAGE,
    413: USAGE,
    429: UNREACHABLE,
    503: UNREACHABLE,  # temporary: a later request may succeed
}


def find_connection(url: str | None = None, token_file: Path | None = None) -> Connection:
    """Find the system: from the arguments, the environment, or the `zelda up` of this directory, in this order."""
    url = url or named_url()
    named_file = os.environ.get(TOKEN_FILE)
    file = token_file or (Path(named_file) if named_file else None)
    if url is None:
        saved = Connection.load(LOCAL_CONNECTION)
        if saved is None:
            raise CliError(
                UNREACHABLE, f"No system runs here: start one with `zelda up`, or set {URL} and {TOKEN_FILE}."
            )
        if not saved.alive:
            raise CliError(
                UNREACHABLE, f"The system of this directory no longer runs at {saved.url}: start it with `zelda up`."
            )
        # TOKEN_FILE without URL is ignored: that token belongs to another system.
        return saved if token_file is None else replace(saved, token_file=token_file)
    if file is None:
        raise CliError(DENIED, f"{url} needs a token: pass a token file with --token-file or {TOKEN_FILE}.")
    return Connection(url, file, 0, {})


def named_url() -> str | None:
    """The address that the environment names; None also for an empty variable."""
    return os.environ.get(URL, "").strip() or None


class CoordinatorClient:
    """The coordinator's REST API. Every failed request becomes a CliError."""

    def __init__(self, http: "httpx.Client", url: str) -> None:
        self._http, self.url = http, url

    def get(self, path: str, **params: Any) -> Any:
        """Send a GET request and return the JSON of the response."""
        return self._request("GET", path, params={name: value for name, value in params.items() if value is not None})

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """Send a POST request and return the JSON of the response."""
        return self._request("POST", path, json=body, headers=dict(headers or {}))

    def put(self, path: str, body: Any) -> Any:
        """Send a PUT request and return the JSON of the response."""
        return self._request("PUT", path, json=body)

    def delete(self, path: str, patience_s: float) -> Any:
        """Send a DELETE request, wait at most `patience_s`, and return the JSON of the response."""
        return self._request("DELETE", path, timeout=patience_s)

    @contextmanager
    def stream(self, path: str) -> Iterator[Iterator[str]]:
        """Open a stream of server-sent events and yield its lines. CliError also when it breaks off in the body."""
        import httpx

        with self._answering(), self._http.stream("GET", path, timeout=httpx.Timeout(10, read=60)) as response:
            if response.status_code != 200 or not _has_content_type(response, "text/event-stream"):
                response.read()
                raise error_from_response(response)
            yield response.iter_lines()

    def _request(self, method: str, path: str, **arguments: Any) -> Any:
        with self._answering():
            response = self._http.request(method, path, **arguments)
        if not response.is_success or not _has_content_type(response, "application/json"):
            self._require_known_run(response)
            raise error_from_response(response)
        return response.json()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """CliError if the system does not answer during the body."""
        import httpx

        try:
            yield
        except httpx.TransportError as error:
            raise CliError(
                UNREACHABLE, f"{self.url} does not answer ({error}): check the address, and that the system runs."
            ) from error

    def _require_known_run(self, response: "httpx.Response") -> None:
        """CliError in the words of the command line if the response says that there is no such run."""
        if response.status_code != 404 or not _has_content_type(response, "application/problem+json"):
            return
        if missing := _NO_RUN.match(response.json()["detail"]):
            from cli.unknown_run import unknown_run

            with self._answering():
                known = self._http.get("/runs", params={"limit": 1000})
            names = [run["run"] for run in known.json()["items"]] if known.is_success else []
            raise unknown_run(missing["run"], names)


def error_from_response(response: "httpx.Response") -> CliError:
    """Convert an error response: the server's own message, and the exit code of its status."""
    if _has_content_type(response, "application/problem+json"):
        return CliError(_EXIT_CODES.get(response.status_code, FAILED), response.json()["detail"])
    # The coordinator always explains an error: without explanation, a proxy in front of it answered.
    url = response.url.copy_with(query=None)
    if response.has_redirect_location:
        moved = response.url.join(response.headers["location"]).copy_with(query=None)
        if (moved.host, moved.path) == (url.host, url.path):
            return CliError(USAGE, f"{url} has moved to {moved}: pass the new address with --url or {URL}.")
    if (
        response.has_redirect_location
        or response.status_code in (401, 403)
        or (response.is_success and _has_content_type(response, "text/html"))
    ):
        return CliError(DENIED, f"A login page answered at {url} instead of the coordinator: {LOGIN_PAGE_HINT}.")
    return CliError(UNREACHABLE, f"{url} returned {response.status_code}: the coordinator is not ready; retry later.")


def _has_content_type(response: "httpx.Response", kind: str) -> bool:
    return bool(response.headers.get("content-type", "").startswith(kind))


@contextmanager
def open_client(connection: Connection) -> Iterator[CoordinatorClient]:
    """Open a client during the body."""
    import httpx

    headers = {"Authorization": f"Bearer {read_token(connection.token_file)}"}
    try:
        address = httpx.URL(connection.url)
        if address.scheme not in ("http", "https"):
            raise httpx.InvalidURL("it does not begin with http:// or https://")
    except httpx.InvalidURL as error:
        raise CliError(USAGE, f"{connection.url} is not a valid URL ({error}): write http://HOST:PORT.") from error
    # This machine needs no proxy and no certificate, so that settings which httpx refuses do not matter.
    here = address.scheme == "http" and address.host in LOOPBACK
    try:
        http = httpx.Client(
            base_url=address, headers=headers, timeout=20, follow_redirects=False, trust_env=not here, verify=not here
        )
    except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:
        raise CliError(
            USAGE,
            f"A proxy or a certificate of the environment cannot be used ({error}): "
            "correct HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE or SSL_CERT_DIR.",
        ) from error
    with http:
        yield CoordinatorClient(http, connection.url)


def read_token(file: Path) -> str:
    """The token in a file, with or without its role before it; CliError without one."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CliError(USAGE, f"The token file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CliError(
            USAGE, f"The token file {file} is not a text file: pass the file that contains the token."
        ) from error
    role, _, rest = text.partition(":")
    token = rest.strip() if role in ROLES else text  # the line format of the coordinator's own token file
    if not (token and token.isascii() and token.isprintable()):  # an HTTP header cannot carry it
        raise CliError(USAGE, f"The token file {file} contains no token: it must be one line of letters and digits.")
    return token
