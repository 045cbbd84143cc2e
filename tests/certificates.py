"""Certificates of servers inside tests."""

import subprocess
from pathlib import Path


def certificate(folder: Path) -> Path:
    """A self-signed certificate for the loopback interface, `tls.crt` in the folder, with its key, `tls.key`."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", "tls.key", "-out", "tls.crt"]
    subprocess.run([*command.split(), *names], cwd=folder, check=True, capture_output=True)
    return folder / "tls.crt"
