"""Reads a policy from the file that `zelda policy export` wrote, without the run's store."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cli.errors import NOT_FOUND, USAGE, CliError
from cli.policy.gated_unit import GatedUnit
from cli.policy.policy_file import FORMAT_WITH_MEMORY, Floats, Policy
from shared.config.problems import first_problem
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.game.observation import with_guidance
from shared.game.observation.versions import FEATURES

SUFFIX: Final = ".npz"
MAX_BYTES: Final = 256 << 20  # of all arrays; larger policies are not ours


class PolicyMetadata(BaseModel):
    """What the metadata of a policy file must say."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: Literal["zelda-policy/1", "zelda-policy/2"]
    run: RunId
    epoch: int = Field(ge=0)
    layers: int = Field(ge=1, le=100)
    features: list[str]
    actions: list[str]
    config: RunConfig


def read_exported(path: Path) -> tuple[Policy, RunConfig]:
    """The policy of a file, and the configuration of the run that trained it.

    CliError, with what is wrong, if the file is missing or does not fit this version.
    """
    if not path.is_file():
        raise CliError(NOT_FOUND, f"There is no file {path}: write one with `zelda policy export`.")
    try:
        arrays = _arrays(path)
        about = json.loads(str(arrays["metadata"]))
        checked = PolicyMetadata.model_validate(about)
        return _policy(arrays, checked, about), checked.config
    except ValidationError as error:
        raise _refused(path, f"metadata: {first_problem(error)}") from error
    except KeyError as error:
        raise _refused(path, f"it holds no {error.args[0]}") from error
    except (OSError, zipfile.BadZipFile, ValueError, AttributeError) as error:
        raise _refused(path, str(error)) from error


def _refused(path: Path, reason: str) -> CliError:
    sentence = f"{path} is no policy of this version ({reason}): export it again with `zelda policy export`."
    return CliError(USAGE, sentence)


def _arrays(path: Path) -> dict[str, Any]:
    """The arrays of the file. ValueError for one that must be unpickled, or for too many bytes."""
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MB")
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _policy(arrays: Mapping[str, Floats], checked: PolicyMetadata, about: Mapping[str, Any]) -> Policy:
    """The policy of these arrays. ValueError if they do not fit each other, or what this version's games show."""
    layers = tuple((arrays[f"weight_{number}"], arrays[f"bias_{number}"]) for number in range(checked.layers))
    unit = GatedUnit.from_arrays(arrays) if checked.format == FORMAT_WITH_MEMORY else None
    outputs = [len(bias) for _, bias in layers]
    inputs = [len(checked.features), *outputs[:-1]]
    inputs[-1] += 0 if unit is None else unit.size
    if [weight.shape for weight, _ in layers] != list(zip(outputs, inputs, strict=True)):
        raise ValueError("its layers do not fit each other and the features")
    if outputs[-1] != len(checked.actions):
        raise ValueError("its last layer does not fit the actions")
    shown = FEATURES.get(checked.config.observation, ())
    if checked.config.guidance.enabled:
        shown = (*shown, *with_guidance.NAMES)
    if tuple(checked.features) != shown:
        raise ValueError(f"{checked.config.observation} has other features in this version")
    return Policy(layers, about, unit)
