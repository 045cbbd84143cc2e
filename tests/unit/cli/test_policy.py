"""A trained policy leaves the project as a file, and plays."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections import deque
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from PIL import Image

from cli import errors
from cli.policy.evaluate import played, summary
from cli.policy.play import PlayedEpisode, PlayOptions
from cli.policy.policy_file import EXAMPLE, Floats, policy_from
from cli.policy.stored_policy import read_policy
from services.trainer.driver.checkpoint import unpack
from services.trainer.options.option_sets import choice_names
from services.trainer.rl.module import HIDDEN, build_network, build_policy
from services.trainer.rl.networks.policy_network import RecurrentPolicy, first_memory
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.errors import Permanent
from shared.game.observation import layout
from shared.game.observation.versions import FEATURES
from shared.store.open import open_store
from tests.unit.cli.test_commands import zelda
from tests.unit.cli.test_ended_system import ARCHIVE, RUN


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of an earlier run."""
    directory = tmp_path_factory.mktemp("policy")
    shutil.unpack_archive(ARCHIVE, directory / "store")
    return directory / "store"


def test_an_exported_policy_gives_the_values_of_the_trained_network(store: Path) -> None:
    policy, _ = asyncio.run(read_policy(open_store(StoreSettings(url=f"file://{store}")), RunId(RUN), None))
    network = build_network((layout.SIZE,), HIDDEN, 8)
    weights = unpack(next(store.glob("models/runs/*/checkpoints/*/*.zip")).read_bytes()).weights
    network.load_state_dict({name[3:]: value for name, value in weights.items() if name.startswith("pi.")})
    seen = np.random.default_rng(1).uniform(-1, 1, (20, layout.SIZE)).astype(np.float32)
    with torch.no_grad():
        expected = network(torch.from_numpy(seen)).numpy()
    memory = policy.first_memory()
    assert np.allclose(np.array([policy.step(one, memory)[0] for one in seen]), expected, atol=1e-5)


@pytest.fixture
def recurrent() -> RecurrentPolicy:
    network = build_policy((len(FEATURES["obs/v2"]),), HIDDEN, 8, memory=True)
    assert isinstance(network, RecurrentPolicy)
    torch.nn.init.normal_(network.head.weight)  # the first policy's actions are nearly equal
    return network


def tensors_of(network: torch.nn.Module) -> dict[str, Floats]:
    return {f"pi.{name}": value.numpy() for name, value in network.state_dict().items()}


def test_an_exported_policy_with_memory_gives_the_values_of_its_network(recurrent: RecurrentPolicy) -> None:
    policy = policy_from(tensors_of(recurrent), {"observation": "obs/v2", "memory": "gru/v1"})
    seen = np.random.default_rng(1).uniform(-1, 1, (20, len(FEATURES["obs/v2"]))).astype(np.float32)
    memory, remembered = policy.first_memory(), first_memory(recurrent, 1)
    for observation in seen:
        values, memory = policy.step(observation, memory)
        with torch.no_grad():
            expected, remembered = recurrent.step(torch.from_numpy(observation[None]), remembered)
        assert np.allclose(values, expected[0].numpy(), atol=1e-4)
    assert np.abs(memory).sum() > 0


def test_the_example_of_a_policy_with_memory_uses_its_memory(recurrent: RecurrentPolicy, tmp_path: Path) -> None:
    policy = policy_from(tensors_of(recurrent), {"observation": "obs/v2", "memory": "gru/v1"})
    (tmp_path / "policy.npz").write_bytes(policy.to_bytes())
    ran = subprocess.run([sys.executable, "-c", policy.example], cwd=tmp_path, capture_output=True, text=True)
    memory, expected = policy.first_memory(), []
    for _ in range(3):
        values, memory = policy.step(np.zeros(len(FEATURES["obs/v2"]), np.float32), memory)
        expected.append(policy.about["actions"][int(values.argmax())])
    assert ran.stdout.split() == expected, ran.stderr


def test_a_policy_with_memory_plays(recurrent: RecurrentPolicy) -> None:
    config = RunConfig.model_validate({"world": "garden", "memory": "gru/v1"})
    policy = policy_from(tensors_of(recurrent), {"observation": "obs/v2", "memory": "gru/v1"})
    assert len(list(PlayedEpisode(policy, config, PlayOptions(steps=5)))) == 5


def test_the_example_runs_without_this_project(store: Path, tmp_path: Path) -> None:
    done = zelda("policy", "export", RUN, "--json", cwd=tmp_path, ZELDA_STORE__URL=f"file://{store}")
    assert done.returncode == errors.OK, done.stderr
    about = json.loads(done.stdout)
    assert (about["file"], about["run"], about["epoch"], len(about["features"])) == ("policy.npz", RUN, 0, layout.SIZE)
    venv.create(tmp_path / "venv", with_pip=False)
    packages = next((tmp_path / "venv/lib").iterdir()) / "site-packages"
    for name in ("numpy", "numpy.libs"):  # the one package that the example needs
        found = Path(np.__file__).parents[1] / name
        if found.exists():
            (packages / name).symlink_to(found)
    python = tmp_path / "venv/bin/python"
    clean = {name: os.environ[name] for name in ("PATH",)}
    for module, missing in (("shared", True), ("services", True), ("numpy", False)):
        tried = subprocess.run([python, "-c", f"import {module}"], cwd=tmp_path, env=clean, capture_output=True)
        assert (tried.returncode != 0) is missing
    ran = subprocess.run([python, "-c", EXAMPLE], cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() in about["actions"]
    assert len(EXAMPLE.splitlines()) == 10


@pytest.mark.parametrize("window", [False, True])
async def test_a_policy_plays_the_same_episode_again(
    store: Path, window: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # a window without a display
    policy, config = await read_policy(open_store(StoreSettings(url=f"file://{store}")), RunId(RUN), 0)
    first, second = (PlayedEpisode(policy, config, PlayOptions(steps=12, seed=3, window=window)) for _ in range(2))
    pictures = [np.stack(list(playing)) for playing in (first, second)]
    assert pictures[0].shape == (12, 144, 160, 3)
    assert np.array_equal(pictures[0], pictures[1])
    assert first.report == second.report
    assert first.report is not None
    assert first.report.steps == 12


async def test_another_seed_draws_other_actions_unless_the_best_are_taken(store: Path) -> None:
    policy, config = await read_policy(open_store(StoreSettings(url=f"file://{store}")), RunId(RUN), 0)
    ends = {}
    for best in (False, True):
        for seed in (1, 2):
            playing = PlayedEpisode(policy, config, PlayOptions(steps=40, seed=seed, best=best))
            ends[best, seed] = deque(playing, maxlen=1)[0].tobytes()
    assert ends[False, 1] != ends[False, 2]


@pytest.mark.parametrize("observation", list(FEATURES))
def test_a_policy_plays_with_the_observation_that_it_learnt_on(observation: str) -> None:
    config = RunConfig.model_validate({"world": "garden", "observation": observation})
    network = build_network((len(FEATURES[observation]),), HIDDEN, 8)
    tensors = tensors_of(network)
    policy = policy_from(tensors, {"observation": observation})
    playing = PlayedEpisode(policy, config, PlayOptions(steps=5))
    assert len(list(playing)) == 5
    assert len(set(policy.about["features"])) == len(FEATURES[observation])


def test_a_policy_with_options_plays_with_them_and_names_them() -> None:
    config = RunConfig.model_validate({"world": "garden", "options": "options/v1"})
    names = choice_names("options/v1")
    network = build_network((len(FEATURES["obs/v2"]),), HIDDEN, len(names))
    tensors = tensors_of(network)
    last = max(name for name in tensors if name.endswith("bias"))
    tensors[last][names.index("walk to 0,2")] = 50.0
    policy = policy_from(tensors, {"observation": "obs/v2", "options": "options/v1"})
    assert policy.about["actions"] == list(names)
    playing = PlayedEpisode(policy, config, PlayOptions(steps=5, best=True))
    pictures = [picture.tobytes() for picture in playing]
    assert len(pictures) == 5
    assert len(set(pictures)) > 1, "the hero walks"


def test_a_play_becomes_a_video(store: Path, tmp_path: Path) -> None:
    words = ("policy", "play", RUN, "--steps", "10", "--video", "play.mp4")
    done = zelda(*words, cwd=tmp_path, ZELDA_STORE__URL=f"file://{store}")
    assert done.returncode == errors.OK, done.stderr
    assert done.stdout.startswith(f"{RUN}, policy after epoch 0: 10 steps, 1 rooms, 0 of ")
    assert (tmp_path / "play.mp4").read_bytes()[4:8] == b"ftyp"


def test_a_play_becomes_a_faster_picture_for_pages(store: Path, tmp_path: Path) -> None:
    words = ("policy", "play", RUN, "--steps", "12", "--video", "play.gif", "--speed", "5")
    done = zelda(*words, cwd=tmp_path, ZELDA_STORE__URL=f"file://{store}")
    assert done.returncode == errors.OK, done.stderr
    assert ": 12 steps, " in done.stdout
    with Image.open(tmp_path / "play.gif") as shown:
        assert (shown.format, shown.n_frames) == ("GIF", 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "sentence"), [((RUN, "--epoch", "7"), "Epoch 7 of"), (("nope",), "There is no run nope")]
)
def test_a_missing_policy_is_not_found(store: Path, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    done = zelda("policy", "export", *words, cwd=tmp_path, ZELDA_STORE__URL=f"file://{store}")
    assert done.returncode == errors.NOT_FOUND
    assert sentence in done.stderr
    assert not (tmp_path / "policy.npz").exists()


def test_a_policy_on_pictures_is_refused_with_a_sentence() -> None:
    with pytest.raises(
        Permanent, match=r"sees pixels/v1: only policies on obs/v1, obs/v2, obs/v3, obs/v4 can be exported"
    ):
        policy_from({}, {"observation": "pixels/v1"})


def test_judges_comment_on_the_play_and_stand_below_the_video(store: Path, tmp_path: Path) -> None:
    video = tmp_path / "play.mp4"
    options = ("--rules", "--steps", "105", "--video", str(video))
    done = zelda("policy", "play", RUN, *options, cwd=tmp_path, ZELDA_STORE__URL=f"file://{store}")
    assert done.returncode == errors.OK, done.stderr
    first, *_, result, path = done.stdout.splitlines()
    assert first.startswith(f"{RUN}  epoch 0  steps 0-")
    assert re.search(r" \| judged [01]\.\d\d: .* \| rules: \w+", first), "score and reason"
    assert " 105 steps, " in result
    assert path == str(video)
    with av.open(str(video)) as container:
        frames = list(container.decode(video=0))
    assert len(frames) == 105
    assert frames[0].height > 3 * 144, "the comment is below the picture"


def test_an_absent_judge_is_named(store: Path, tmp_path: Path) -> None:
    judges = tmp_path / "judges.yaml"
    judges.write_text(
        "routes: {away: {url: 'http://127.0.0.1:9/v1'}}\n"
        "judges: [{name: away, route: away, model: m, dimensions: [progress]}]\n"
    )
    done = zelda("policy", "play", RUN, "--judges", str(judges), cwd=tmp_path, ZELDA_STORE__URL=f"file://{store}")
    assert done.returncode == errors.FAILED
    assert "route away" in done.stderr
    assert "start the server, or correct its address" in done.stderr


def test_many_episodes_show_how_often_a_policy_finishes(store: Path, tmp_path: Path) -> None:
    options = ("--episodes", "3", "--steps", "40", "--seed", "2")
    done = zelda("policy", "evaluate", RUN, *options, "--json", cwd=tmp_path, ZELDA_STORE__URL=f"file://{store}")
    assert done.returncode == errors.OK, done.stderr
    found = json.loads(done.stdout)
    assert (found["episodes"], found["finished"], found["steps_to_finish"]) == (3, 0, None)
    assert found["finished_low"] == 0
    assert found["finished_high"] == pytest.approx(0.56, abs=0.01), "three failures exclude little"
    words = zelda("policy", "evaluate", RUN, *options, cwd=tmp_path, ZELDA_STORE__URL=f"file://{store}")
    assert "0 of 3 episodes finish the game (95 % interval 0.00 to 0.56); " in words.stdout


def test_each_episode_of_an_evaluation_is_one_that_can_be_watched() -> None:
    config = RunConfig.model_validate({"world": "garden", "observation": "obs/v1"})
    policy = policy_from(tensors_of(build_network((len(FEATURES["obs/v1"]),), HIDDEN, 8)), {"observation": "obs/v1"})
    reports = list(played(policy, config, PlayOptions(steps=30, seed=5), 2))
    watched = PlayedEpisode(policy, config, PlayOptions(steps=30, seed=6))
    deque(watched, maxlen=0)
    assert reports[1] == watched.report
    finished = replace(reports[0], finished=True, steps=20)
    assert summary([finished, reports[1]])["steps_to_finish"] == 20
    assert summary([finished, reports[1]])["finished"] == 1
