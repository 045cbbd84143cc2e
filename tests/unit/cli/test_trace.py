"""`zelda trace` names every object from a reward to the checkpoint behind it, and what the store no longer holds."""

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import FAILED, OK
from cli.trace.chain import trace_epoch, trace_segment
from cli.trace.link import Link
from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.scores import JudgeReplies, SegmentScores
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import NotFound, Store
from tests.unit.cli.test_commands import zelda
from tests.unit.cli.test_ended_system import ARCHIVE, leave_connection

RUN, NAME = RunId("demo-20261123-001156"), SegmentId("e0000-r00-v01-0000-s001")
RECORDING = keys.segment(RUN, 0, EpisodeId("e0000-r00-v01-0000"), NAME)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The store of a finished run; its one reward model shapes a second epoch, which is only ordered."""
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    found = open_store(StoreSettings.model_validate({"url": f"file://{tmp_path / 'store'}"}))
    asyncio.run(order_second_epoch(found))
    return found


async def order_second_epoch(store: Store) -> None:
    key = keys.reward_model_card(RUN, 0)
    data = await store.get(key)
    first = EpochStart.from_bytes(await store.get(keys.epoch_start(RUN, 0)))
    model = RewardModelCard.from_bytes(data).reference(key, sha256(data))
    second = first.model_copy(update={"epoch": 1, "reward_model": model, "created": datetime.now(UTC)})
    await store.create(keys.epoch_start(RUN, 1), second.to_bytes())


def states(links: list[Link]) -> dict[str, str]:
    return {link.what: link.state for link in links}


async def test_a_segment_is_followed_from_the_reward_to_its_recording(store: Store) -> None:
    links = await trace_segment(store, RUN, NAME)
    assert states(links) == {
        "order of epoch 1": "stored",
        "reward model of epoch 0": "stored",
        "its weights": "stored",
        "its pairs": "not kept",
        "its scores": "stored",
        "score": "stored",
        "votes of state": "stored",
        "prompt and replies of state": "not kept",
        "votes of puzzle": "stored",
        "prompt and replies of puzzle": "not kept",
        "votes of vision": "stored",
        "prompt and replies of vision": "not kept",
        "segment": "stored",
        "checkpoint that played it": "not kept",
    }
    facts = "\n".join(fact for link in links for fact in link.facts)
    assert "the model of epoch 0 shapes it" in facts
    assert "votes: progress 0 0 0" in facts
    assert "15 pairs for training and 2 held out, of 6 segments" in facts


async def test_a_gated_judge_is_shown_with_the_reasons(store: Store) -> None:
    key = keys.score(RUN, 0, NAME)
    judged = SegmentScores.from_bytes(await store.get(key))
    await store.put(key, judged.model_copy(update={"gated": {"puzzle": ["alpha 0.20 is below 0.5"]}}).to_bytes())
    facts = {link.what: link.facts for link in await trace_segment(store, RUN, NAME)}
    assert "not counted: alpha 0.20 is below 0.5" in facts["votes of puzzle"]
    assert not any(fact.startswith("not counted") for fact in facts["votes of state"])


async def test_an_epoch_is_followed_from_its_checkpoint_to_the_scores(store: Store) -> None:
    first = await trace_epoch(store, RUN, 0)
    assert list(states(first)) == ["checkpoint of epoch 0", "order of epoch 0"]
    assert first[1].facts == ["not shaped: no reward model existed before epoch 0"]
    shaped = states(await trace_epoch(store, RUN, 1))
    assert list(shaped)[:3] == ["checkpoint of epoch 1", "order of epoch 1", "reward model of epoch 0"]
    assert shaped["its scores"] == "stored"


async def test_what_retention_removed_and_what_changed_is_named(store: Store) -> None:
    links = await trace_segment(store, RUN, NAME)
    found = {link.what: str(link.key) for link in links}
    await store.delete(found["segment"])
    await store.put(found["its weights"], b"other weights")
    await store.delete(found["score"])
    after = states(await trace_segment(store, RUN, NAME))
    assert after["segment"] == after["score"] == after["checkpoint that played it"] == "removed"
    assert after["its weights"] == "changed"
    assert after["its scores"] == "changed"  # one of the scores behind the model is gone


async def test_a_checkpoint_is_found_by_the_digest_in_its_name(store: Store) -> None:
    (link,) = [one for one in await trace_epoch(store, RUN, 0) if one.what == "checkpoint of epoch 0"]
    assert link.digest is not None
    assert str(link.key).endswith(f"_{link.digest[:16]}.zip")


async def test_an_unknown_segment_or_epoch_is_refused(store: Store) -> None:
    with pytest.raises(NotFound, match="no finished epoch of demo-20261123-001156 lists a segment nothing"):
        await trace_segment(store, RUN, SegmentId("nothing"))
    with pytest.raises(NotFound, match="has no epoch 2"):
        await trace_epoch(store, RUN, 2)


async def test_kept_replies_are_shown_with_what_the_judge_read(store: Store) -> None:
    scores = SegmentScores.from_bytes(await store.get(keys.score(RUN, 0, NAME)))
    judge = scores.judges[0]
    prompt = {"messages": [{"role": "system", "content": "rubric"}, {"role": "user", "content": "1 room"}]}
    kept = JudgeReplies(judge=judge.judge, prompt=prompt, replies=['{"progress": 0}'])
    await store.put(keys.replies(RUN, judge.prompt), kept.pack())
    (link,) = [one for one in await trace_segment(store, RUN, NAME) if one.what == "prompt and replies of state"]
    assert (link.state, link.digest, link.text) == ("stored", judge.prompt, "1 room")
    assert link.facts == ['reply: {"progress": 0}']


def test_the_command_names_what_is_missing(tmp_path: Path, store: Store) -> None:
    leave_connection(tmp_path, {"ZELDA_STORE__URL": f"file://{tmp_path / 'store'}"}, killed=True)
    asyncio.run(store.delete(keys.score(RUN, 0, NAME)))
    done = zelda("trace", RUN, NAME, cwd=tmp_path)
    assert done.returncode == FAILED, done.stderr
    assert "score: removed" in done.stdout
    assert "No longer in the store: score." in done.stderr
    # One of the scores behind the model is gone.
    assert "Changed, damaged or incomplete since it was recorded: its scores." in done.stderr
    asked = zelda("trace", RUN, cwd=tmp_path)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "Name a segment, or an epoch by --epoch" in asked.stderr


@pytest.mark.parametrize("output", [[], ["--json"]])
def test_an_object_that_was_changed_ends_the_trace_with_failure(
    output: list[str], tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path / 'store'}")
    asyncio.run(store.put(RECORDING, b"other play"))
    assert exit_code_of(["trace", RUN, NAME, *output]) == FAILED
    printed = capsys.readouterr()
    assert "order of epoch 1" in printed.out
    assert printed.err.splitlines()[-1] == "zelda: Changed, damaged or incomplete since it was recorded: segment."


def test_an_object_that_retention_removed_is_no_failure(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path / 'store'}")
    asyncio.run(store.delete(RECORDING))
    assert exit_code_of(["trace", RUN, NAME]) == OK
    assert capsys.readouterr().err.splitlines()[-1] == "No longer in the store: segment, checkpoint that played it."
