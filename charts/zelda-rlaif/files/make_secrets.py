"""Makes the release's credentials, once, for development: random, never printed, never changed if they exist.

It talks to the Kubernetes API with the pod's own token and may only create Secrets. In production Secrets come from
elsewhere (External Secrets, Vault, sealed) and this does not run. Standard library only, because it runs in any image.
"""

import base64
import json
import os
import secrets
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CREATED, EXISTS = 201, 409


def word() -> str:
    """A random password of 33 letters and digits. It starts with a letter, so that no parser takes it for a number."""
    return "z" + secrets.token_hex(16)


def bus_entries(users: list[str]) -> dict[str, str]:
    """For each user the password that the server reads and the line `USER:PASSWORD` that the client reads."""
    entries: dict[str, str] = {}
    for user in users:
        password = word()
        entries |= {f"{user}.password": password, f"{user}.credentials": f"{user}:{password}"}
    return entries


def api_entries() -> dict[str, str]:
    """The API's token file, the operator's token alone for clients, and the log-in proxy's cookie key (32 bytes)."""
    operator, viewer = word(), word()
    tokens = f"operator:{operator}\nviewer:{viewer}\n"
    return {"tokens": tokens, "operator-token": operator, "session_secret": secrets.token_hex(16)}


def wanted(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The Secrets to make: name -> entries. A claimed bucket brings its own key pair: no Secret is named then."""
    found = {
        environment["BUS_SECRET_NAME"]: bus_entries(environment["BUS_USERS"].split(",")),
        environment["API_SECRET_NAME"]: api_entries(),
    }
    if "STORE_SECRET_NAME" in environment:
        found[environment["STORE_SECRET_NAME"]] = {key: word() for key in environment["STORE_KEYS"].split(",")}
    return found


def manifest(name: str, entries: Mapping[str, str]) -> bytes:
    """The Secret as JSON."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in entries.items()}
    metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": "zelda-secrets-hook"}}
    return json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}).encode()


def create(api: str, namespace: str, token: str, body: bytes, trust: ssl.SSLContext | None) -> int:
    """Ask the API server to create the Secret and return its status code."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{api}/api/v1/namespaces/{namespace}/secrets", body, headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=15, context=trust) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def main() -> int:
    """Create every wanted Secret that does not exist; any other answer of the API server is a failure."""
    api = os.environ.get("KUBERNETES_API", "https://kubernetes.default.svc")
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt")) if api.startswith("https") else None
    token = Path(os.environ.get("TOKEN_FILE", str(ACCOUNT / "token"))).read_text().strip()
    failed = 0
    for name, entries in wanted(os.environ).items():
        status = create(api, os.environ["NAMESPACE"], token, manifest(name, entries), trust)
        outcome = {CREATED: "created", EXISTS: "exists, left alone"}.get(status, f"refused with status {status}")
        sys.stdout.write(f"secret {name}: {outcome}\n")
        failed += status not in (CREATED, EXISTS)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
