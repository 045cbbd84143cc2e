"""Reads the policy of a run from its checkpoint in the store."""

import io
import json
import zipfile
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load

from cli.errors import NOT_FOUND, CliError
from cli.policy.policy_file import Policy, policy_from
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.errors import Permanent
from shared.state.documents import read_document
from shared.store import keys
from shared.store.port import Store


async def read_policy(store: Store, run: RunId, epoch: int | None) -> tuple[Policy, RunConfig]:
    """The policy at the end of an epoch, by default the newest finished one, and the configuration of its run."""
    number = await _newest(store, run) if epoch is None else epoch
    key = keys.epoch_finished(run, number)
    if not await store.exists(key):
        raise CliError(NOT_FOUND, f"Epoch {number} of {run} is not finished: see `zelda run show {run}`.")
    finished = await read_document(store, EpochFinishedRecord, key)
    start = await read_document(store, EpochStart, keys.epoch_start(run, number))
    raw = await store.get(finished.checkpoint_key, finished.checkpoint_digest)
    config = start.config
    about: dict[str, Any] = {
        "run": str(run),
        "epoch": number,
        "checkpoint": finished.checkpoint_digest,
        "observation": config.observation,
        "guided": config.guidance.enabled,
        "game": config.game,
        "world": config.world,
        "frame_skip": config.frame_skip,
        "actions_layout": config.actions,
        "options": config.options,
        "memory": config.memory,
        "config": config.model_dump(mode="json"),
    }
    return policy_from(_tensors(raw), about), config


async def _newest(store: Store, run: RunId) -> int:
    number = 0
    while await store.exists(keys.epoch_finished(run, number)):
        number += 1
    if not number:
        raise CliError(NOT_FOUND, f"{run} has no finished epoch: see `zelda run list`.")
    return number - 1


def _tensors(checkpoint: bytes) -> dict[str, Any]:
    """The weights in a checkpoint (services/trainer/driver/checkpoint.py), read without torch."""
    try:
        with zipfile.ZipFile(io.BytesIO(checkpoint)) as archive:
            json.loads(archive.read("state.json"))
            return dict(load(archive.read("weights.safetensors")))
    except (zipfile.BadZipFile, SafetensorError, KeyError, ValueError) as error:
        raise Permanent(
            f"the checkpoint cannot be read ({error}): restore the object, or choose another epoch"
        ) from error
