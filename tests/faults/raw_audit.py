"""Audits a run from its raw objects, with code that shares nothing with the services: no key, no contract, no store.

An error in a shared module would hide itself from an audit that uses the module.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from minio import Minio


def raw_problems(settings: Mapping[str, str], run: str) -> list[str]:
    """One sentence per violated guarantee: segments lost or doubled, wrong digests, fences that decrease."""
    client = Minio(
        urlsplit(settings["ZELDA_STORE__ENDPOINT"]).netloc,
        access_key=Path(settings["ZELDA_STORE__ACCESS_KEY_FILE"]).read_text(),
        secret_key=Path(settings["ZELDA_STORE__SECRET_KEY_FILE"]).read_text(),
        secure=False,
    )
    prefix = settings["ZELDA_STORE__URL"].removeprefix("s3://")
    recordings, models = f"{prefix}-episodes", f"{prefix}-models"
    finished = dict(_documents(client, models, f"runs/{run}/epochs/", "finished.json"))
    starts = dict(_documents(client, models, f"runs/{run}/epochs/", "start.json"))
    scores = {
        key.rpartition("/")[2].removesuffix(".json"): document
        for key, document in _documents(client, recordings, f"scores/{run}/", ".json")
        if "/default/" in key
    }
    listed = [segment for document in finished.values() for segment in document["segments"]]
    return [
        *_compare(listed, scores),
        *_digests(client, recordings, listed),
        *_fences({document["epoch"]: document["fence"] for document in starts.values()}),
    ]


def _documents(client: Minio, bucket: str, prefix: str, suffix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for entry in client.list_objects(bucket, prefix=prefix, recursive=True):
        if entry.object_name.endswith(suffix):
            yield entry.object_name, json.loads(_read(client, bucket, entry.object_name))


def _read(client: Minio, bucket: str, key: str) -> bytes:
    response = client.get_object(bucket, key)
    try:
        return bytes(response.read())
    finally:
        response.close()
        response.release_conn()


def _compare(listed: list[dict[str, Any]], scores: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    times = Counter(segment["segment"] for segment in listed)
    if doubled := sorted(name for name, number in times.items() if number > 1):
        yield f"raw audit: {len(doubled)} segments listed twice: {doubled[:5]}"
    if lost := sorted(times.keys() - scores.keys()):
        yield f"raw audit: {len(lost)} segments without an outcome: {lost[:5]}"
    digest = {segment["segment"]: segment["digest"] for segment in listed}
    wrong = sorted(name for name in times.keys() & scores.keys() if scores[name]["segment_digest"] != digest[name])
    if wrong:
        yield f"raw audit: {len(wrong)} scores of other archives: {wrong[:5]}"


def _digests(client: Minio, bucket: str, listed: list[dict[str, Any]]) -> Iterator[str]:
    for segment in listed:
        raw = _read(client, bucket, segment["key"].partition("/")[2])
        if hashlib.sha256(raw).hexdigest() != segment["digest"]:
            yield f"raw audit: the archive of {segment['segment']} differs from its digest"


def _fences(by_epoch: Mapping[int, int]) -> Iterator[str]:
    fences = [by_epoch[epoch] for epoch in sorted(by_epoch)]
    if fences != sorted(fences):
        yield f"raw audit: the fences of the epochs decrease: {fences}"
