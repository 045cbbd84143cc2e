"""Writes the JSON Schema of every event (with its envelope) and document: `python -m shared.contracts.generate`.

The files in `schemas/` are committed, and a test compares them. People and other tools read them; services do not.
`shared.bus.asyncapi` writes one more file there: who sends and receives what.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from shared.contracts.base import Contract
from shared.contracts.card import RewardModelCard
from shared.contracts.driver import DriverFailed, DriverHeartbeat, DriverStopped, LiveFrame
from shared.contracts.envelope import Envelope
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SavedState
from shared.contracts.events import EVENTS, EventData
from shared.contracts.judging.epoch_report import EpochJudging
from shared.contracts.judging.pairs import PairComparison, PairSelection
from shared.contracts.progress import ArchiveCoverage, RunNotes, RunProgress, RunSummary
from shared.contracts.run import RunConfig, RunRecord
from shared.contracts.scores import SegmentScores
from shared.contracts.segment import SegmentManifest

FOLDER: Final = Path(__file__).parent / "schemas"
ASYNCAPI: Final = "asyncapi.json"  # written by shared.bus.asyncapi
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
DOCUMENTS: Final[dict[str, type[Contract]]] = {
    "run-config": RunConfig,
    "run-record": RunRecord,
    "run-progress": RunProgress,
    "run-summary": RunSummary,
    "run-notes": RunNotes,
    "archive-coverage": ArchiveCoverage,
    "saved-state": SavedState,
    "epoch-start": EpochStart,
    "epoch-finished": EpochFinishedRecord,
    "segment-manifest": SegmentManifest,
    "segment-scores": SegmentScores,
    "epoch-judging": EpochJudging,
    "pair-selection": PairSelection,
    "pair-comparison": PairComparison,
    "reward-model-card": RewardModelCard,
    "driver-heartbeat": DriverHeartbeat,
    "driver-stopped": DriverStopped,
    "driver-failed": DriverFailed,
    "live-frame": LiveFrame,
}


def event_schema(event: type[EventData]) -> dict[str, Any]:
    """The schema of one kind of event as it travels: the envelope, with the data that belongs to its type."""
    schema, data = Envelope.model_json_schema(), event.model_json_schema()
    definitions = {**schema.pop("$defs", {}), **data.pop("$defs", {})}
    definitions.pop(EventData.__name__, None)
    schema["title"], schema["description"] = event.__name__, event.__doc__
    schema["properties"]["type"] = {"const": event.TYPE}
    schema["properties"]["data"] = data
    return {
        "$schema": DIALECT,
        "$id": f"{event.TYPE}.json",
        **schema,
        **({"$defs": definitions} if definitions else {}),
    }


def document_schema(name: str, document: type[Contract]) -> dict[str, Any]:
    """The schema of one kind of object in the store."""
    return {"$schema": DIALECT, "$id": f"{name}.json", **document.model_json_schema()}


def files() -> dict[str, str]:
    """Name and text of every published file."""
    schemas = {f"{event.TYPE}.json": event_schema(event) for event in EVENTS}
    schemas |= {f"{name}.json": document_schema(name, document) for name, document in DOCUMENTS.items()}
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def stale(folder: Path = FOLDER) -> list[str]:
    """Files that are missing, differ, or should not be there."""
    wanted = files()
    paths = [path for path in folder.glob("*.json") if path.name != ASYNCAPI]
    there = {path.name: path.read_text(encoding="utf-8") for path in paths}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m shared.contracts.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of date")
    if parser.parse_args(argv).check:
        names = stale()
        sys.stdout.write("".join(f"out of date: {name}; run `python -m shared.contracts.generate`\n" for name in names))
        return 1 if names else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale():
        (FOLDER / name).unlink(missing_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
