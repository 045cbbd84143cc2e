"""An exported policy plays without its run: what is in the file is enough, and what does not fit is refused."""

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli import errors
from cli.errors import CliError
from cli.policy.exported_policy import read_exported
from cli.policy.play import PlayedEpisode, PlayOptions
from cli.policy.policy_file import policy_from
from services.trainer.rl.module import HIDDEN, build_policy
from shared.contracts.run import RunConfig
from shared.game.observation.versions import FEATURES
from tests.unit.cli.test_commands import zelda
from tests.unit.cli.test_ended_system import ARCHIVE, RUN

POLICIES = Path(__file__).parents[3] / "docs/results/policies"
FEATURE_COUNT = len(FEATURES["obs/v2"])


def exported(config: RunConfig, **about: Any) -> dict[str, Any]:
    """The arrays of a policy of this run, exported after its second epoch."""
    network = build_policy((len(FEATURES[config.observation]),), HIDDEN, 8, memory=config.memory != "none")
    tensors = {f"pi.{name}": value.numpy() for name, value in network.state_dict().items()}
    meaning = {"run": "first", "epoch": 2, "observation": config.observation, "config": config.model_dump(mode="json")}
    policy = policy_from(tensors, {**meaning, **about})
    with np.load(io.BytesIO(policy.to_bytes())) as arrays:
        return dict(arrays)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.npz"


def test_an_exported_policy_plays_as_the_run_does(file: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    store = {"ZELDA_STORE__URL": f"file://{tmp_path / 'store'}"}
    assert zelda("policy", "export", RUN, "--to", str(file), cwd=tmp_path, **store).returncode == errors.OK
    play = ("--steps", "40", "--seed", "3")
    from_run = zelda("policy", "play", RUN, *play, cwd=tmp_path, **store)
    alone = tmp_path / "elsewhere"
    alone.mkdir()
    from_file = zelda("policy", "play", str(file), *play, cwd=alone)
    assert from_file.returncode == errors.OK, from_file.stderr
    assert from_file.stdout == from_run.stdout
    many = zelda("policy", "evaluate", str(file), "--episodes", "2", "--steps", "20", cwd=alone)
    assert "0 of 2 episodes finish the game" in many.stdout
    wrong = zelda("policy", "play", str(file), "--epoch", "1", cwd=alone)
    assert wrong.returncode == errors.USAGE
    assert "a file holds the policy of one epoch" in wrong.stderr


@pytest.mark.parametrize("memory", ["none", "gru/v1"])
def test_a_policy_chooses_the_same_after_the_file(file: Path, memory: str) -> None:
    config = RunConfig.model_validate({"world": "garden", "observation": "obs/v2", "memory": memory})
    np.savez(file, **exported(config))
    policy, read = read_exported(file)
    assert read == config
    assert (policy.about["run"], policy.about["epoch"]) == ("first", 2)
    played = PlayedEpisode(policy, read, PlayOptions(steps=20))
    assert played.finish().steps == 20


def changed(name: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Metadata of which one field is another; None: it is missing."""

    def change(arrays: dict[str, Any]) -> dict[str, Any]:
        about = json.loads(str(arrays["metadata"]))
        about = {**about, name: value} if value is not None else {key: about[key] for key in about if key != name}
        return {**arrays, "metadata": np.array(json.dumps(about))}

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda arrays: {"other": np.zeros(2)}, "it holds no metadata"),
        (lambda arrays: {**arrays, "metadata": np.array("[1]")}, "metadata"),
        (lambda arrays: {**arrays, "metadata": np.array([{}], object)}, "Object arrays cannot be loaded"),
        (lambda arrays: {**arrays, "weight_0": arrays["weight_0"][:, 1:]}, "its layers do not fit each other"),
        (lambda arrays: {key: arrays[key] for key in arrays if key != "bias_1"}, "it holds no bias_1"),
        (changed("config", None), "metadata: config"),
        (changed("run", "../x"), "metadata: run"),
        (changed("format", "zelda-policy/9"), "metadata: format"),
        (changed("actions", ["up"]), "its last layer does not fit the actions"),
        (changed("features", [str(number) for number in range(FEATURE_COUNT)]), "obs/v2 has other features"),
    ],
)
def test_a_file_that_is_no_policy_is_refused(
    file: Path, change: Callable[[dict[str, Any]], dict[str, Any]], reason: str
) -> None:
    np.savez(file, **change(exported(RunConfig.model_validate({"observation": "obs/v2"}))))
    with pytest.raises(CliError, match=f"is no policy of this version .*{re.escape(reason)}.*: export it again"):
        read_exported(file)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 half"])
def test_a_damaged_file_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(CliError, match="is no policy of this version"):
        read_exported(file)


def test_an_absent_file_is_not_found(file: Path) -> None:
    with pytest.raises(CliError, match=r"There is no file .*policy\.npz: write one with `zelda policy export`"):
        read_exported(file)


@pytest.mark.parametrize("published", sorted(POLICIES.glob("*.npz")), ids=lambda file: file.stem)
def test_a_published_policy_still_plays(published: Path) -> None:
    policy, config = read_exported(published)
    playing = PlayedEpisode(policy, config, PlayOptions(steps=600, seed=1))
    assert playing.finish().milestones >= 1, "it goes where it has learnt to go"


def test_policies_are_published() -> None:
    assert [*POLICIES.glob("*.npz")]
