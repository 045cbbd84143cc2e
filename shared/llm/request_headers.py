"""HTTP headers of a request: llm-d's flow control and the route's token."""

from shared.config.settings import read_token
from shared.llm.port import RouteUnavailable
from shared.llm.route_spec import RouteSpec


def request_headers(route: str, spec: RouteSpec, fairness_id: str) -> dict[str, str]:
    """Return the headers of one request. `fairness_id` is the flow, unless the route names its own.

    llm-d's headers come in both spellings: routers before 0.9 know only `x-gateway-`.
    """
    headers = {"content-type": "application/json"}
    for name, value in (("objective", spec.objective), ("fairness-id", spec.fairness or fairness_id)):
        if value:
            headers[f"x-llm-d-inference-{name}"] = value
            headers[f"x-gateway-inference-{name}"] = value
    if spec.token_file is not None:
        try:
            token = read_token(spec.token_file)  # for every request: service-account tokens rotate
        except ValueError as error:
            raise RouteUnavailable(f"route {route}: token file {error}") from error
        headers["authorization"] = f"Bearer {token}"
    return headers
