"""`python -m deploy.watch`: scrape the local system of `zelda up` or `make demo`, and list every dashboard query.

It reads the services' addresses from their logs. The exit code is 1 if an expected series is missing.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from deploy.generate.dashboards import DASHBOARDS
from deploy.watch.prometheus import running_prometheus
from deploy.watch.queries import draw_dashboard, query_results, table

LOGS = Path("runs/.local/logs")
EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 - hosts of a service that listens on all addresses


def addresses(logs: Path) -> dict[str, str]:
    """service -> host:port, from the last line that says `started` in each service's log."""
    found: dict[str, str] = {}
    for path in sorted(logs.glob("*.log")):
        for line in path.read_text(errors="replace").splitlines():
            record = _record(line)
            if record.get("event") == "service started" and "address" in record:
                host, _, port = record["address"].rpartition(":")
                found[record["service"]] = f"{'127.0.0.1' if host in EVERYWHERE else host}:{port}"
    return found


def _record(line: str) -> dict[str, str]:
    if not line.startswith("{"):
        return {}
    try:
        return dict(json.loads(line))
    except ValueError:
        return {}


def main(argv: list[str] | None = None) -> int:
    """Scrape, list the queries, draw the dashboards."""
    parser = argparse.ArgumentParser(prog="python -m deploy.watch", description=__doc__)
    parser.add_argument("--logs", type=Path, default=LOGS, help=f"folder of the services' logs, default {LOGS}")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds to scrape before the queries")
    parser.add_argument("--pictures", type=Path, help="draw each dashboard into this folder")
    arguments = parser.parse_args(argv)
    targets = addresses(arguments.logs)
    if not targets:
        sys.stderr.write(f"{arguments.logs} has no log of a started service: run `zelda up`, or set --logs\n")
        return 2
    if shutil.which("prometheus") is None:
        sys.stderr.write("prometheus is not installed: apt-get install prometheus\n")
        return 2
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)  # fail before minutes of scraping
    with tempfile.TemporaryDirectory() as folder, running_prometheus(targets, Path(folder)) as server:
        begin = time.time()
        time.sleep(arguments.seconds)
        found = list(query_results(server))
        sys.stdout.write(table(found))
        for dashboard in DASHBOARDS if arguments.pictures else ():
            draw_dashboard(
                server, dashboard, begin, time.time(), arguments.pictures / f"dashboard-{dashboard.name}.png"
            )
    return int(any(one.missing for one in found))


if __name__ == "__main__":
    sys.exit(main())
