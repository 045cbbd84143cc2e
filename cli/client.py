"""Talks to a coordinator. It finds a local system by itself; elsewhere it wants an address and a token file."""

import os
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
ROLES: Final = ("viewer", "operator")
URL, TOKEN_FILE = "ZELDACLI_URL", "ZELDACLI_TOKEN_FILE"
LOGIN_PAGE_HINT: Final = (
    "go past it with `kubectl port-forward svc/zelda-coordinator 8080` and --url http://127.0.0.1:8080 "
    "(docs/install-openshift.md)"
)
_EXIT_CODES: Final = {
    401: DENIED,
    403: DENIED,
    404: NOT_FOUND,
    409: CONFLICT,
    422: USAGE,
    413: USAGE,
    429: UNREACHABLE,
    503: UNREACHABLE,  # it may answer later
}


def find_connection(url: str | None = None, token_file: Path | None = None) -> Connection:
    """Where to go: what was given, else the environment, else the system that `zelda up` started in this directory."""
    url = url or os.environ.get(URL)
    file = token_file or (Path(os.environ[TOKEN_FILE]) if TOKEN_FILE in os.environ else None)
    if url is None:
        saved = Connection.load(LOCAL_CONNECTION)
        if saved is None:
            raise CliError(
                UNREACHABLE, f"No system runs here: start one with `zelda up`, or set {URL} and {TOKEN_FILE}."
            )
        # A token of the environment belongs to another system, whose address stands beside it.
        return saved if token_file is None else replace(saved, token_file=token_file)
    if file is None:
        raise CliError(DENIED, f"{url} needs a token: name its file with --token-file or {TOKEN_FILE}.")
    return Connection(url, file, 0, {})


class CoordinatorClient:
    """The REST interface, with every error_from_response turned into one sentence and an exit code."""

    def __init__(self, http: "httpx.Client", url: str) -> None:
        self._http, self._url = http, url

    def get(self, path: str, **params: Any) -> Any:
        """What a GET answers."""
        return self._request("GET", path, params={name: value for name, value in params.items() if value is not None})

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """What a POST answers."""
        return self._request("POST", path, json=body, headers=dict(headers or {}))

    @contextmanager
    def stream(self, path: str) -> Iterator[Iterator[str]]:
        """Lines of an endless answer."""
        import httpx

        with self._http.stream("GET", path, timeout=httpx.Timeout(10, read=60)) as answer:
            if answer.status_code != 200 or not _has_content_type(answer, "text/event-stream"):
                answer.read()
                raise error_from_response(answer)
            yield answer.iter_lines()

    def _request(self, method: str, path: str, **arguments: Any) -> Any:
        import httpx

        try:
            answer = self._http.request(method, path, **arguments)
        except httpx.TransportError as error:
            raise CliError(UNREACHABLE, f"{self._url} does not answer ({error}): is the system up?") from error
        if not answer.is_success or not _has_content_type(answer, "application/json"):
            raise error_from_response(answer)
        return answer.json()


def error_from_response(answer: "httpx.Response") -> CliError:
    """The server's own sentence, and the exit code that belongs to its status."""
    if _has_content_type(answer, "application/problem+json"):
        return CliError(_EXIT_CODES.get(answer.status_code, FAILED), answer.json()["detail"])
    # The coordinator always gives a reason; this is what stands in front of it.
    place = answer.url.copy_with(query=None)
    if answer.has_redirect_location:
        moved = answer.url.join(answer.headers["location"]).copy_with(query=None)
        if (moved.host, moved.path) == (place.host, place.path):
            return CliError(USAGE, f"{place} has moved to {moved}: give the new address with --url or {URL}.")
    if (
        answer.has_redirect_location
        or answer.status_code in (401, 403)
        or (answer.is_success and _has_content_type(answer, "text/html"))
    ):
        return CliError(DENIED, f"A log-in page answered at {place} instead of the coordinator: {LOGIN_PAGE_HINT}.")
    return CliError(UNREACHABLE, f"{place} answered {answer.status_code}: the coordinator is not ready there.")


def _has_content_type(answer: "httpx.Response", kind: str) -> bool:
    return bool(answer.headers.get("content-type", "").startswith(kind))


@contextmanager
def open_client(to: Connection) -> Iterator[CoordinatorClient]:
    """A client for the time of the body."""
    import httpx

    headers = {"Authorization": f"Bearer {_read_token(to.token_file)}"}
    try:
        http = httpx.Client(base_url=to.url, headers=headers, timeout=20, follow_redirects=False)
        if http.base_url.scheme not in ("http", "https"):
            raise httpx.InvalidURL("it does not begin with http:// or https://")
    except httpx.InvalidURL as error:
        raise CliError(USAGE, f"{to.url} is no address ({error}): write http://HOST:PORT.") from error
    with http:
        yield CoordinatorClient(http, to.url)


def _read_token(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CliError(USAGE, f"The token file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CliError(USAGE, f"The token file {file} holds no text: name the file with the token.") from error
    role, _, rest = text.partition(":")
    token = rest.strip() if role in ROLES else text  # a line of the coordinator's own will do
    if not (token and token.isascii() and token.isprintable()):  # a header cannot carry it
        raise CliError(USAGE, f"The token file {file} holds no token: it must be one line of letters and digits.")
    return token
