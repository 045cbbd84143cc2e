"""Prompts and raw replies over REST: where they are kept, where not, damaged, and too long to show."""

import json
from pathlib import Path
from typing import Any

from services.coordinator.readmodels.judge_replies import MAX_CHARACTERS, shorten
from shared.contracts.ids import Digest, JudgeName
from shared.contracts.scores import JudgeReplies
from shared.store import keys
from tests.unit.coordinator.api_client import VIEWER, client
from tests.unit.coordinator.harness import RUN, Harness

PROMPT = Digest("ab" * 32)
ROUTE = f"/runs/{RUN}/replies/{PROMPT}"


def kept(*replies: str, **prompt: Any) -> JudgeReplies:
    """What a judge service keeps."""
    return JudgeReplies(judge=JudgeName("state"), prompt=prompt, replies=list(replies))


async def answer(directory: Path, stored: bytes | None) -> Any:
    """The response to a viewer, where these bytes are stored."""
    harness = Harness()
    await harness.create_run()
    if stored is not None:
        await harness.store.put(keys.replies(RUN, PROMPT), stored)
    async with client(harness, directory, VIEWER) as http:
        return await http.get(ROUTE)


async def test_prompt_and_replies_are_shown_word_for_word(tmp_path: Path) -> None:
    picture = {"type": "image_url", "image_url": {"url": "sha256:00ff"}}
    messages = [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": [{"type": "text", "text": "room 1 → 2"}, picture]},
    ]
    document = kept('{"progress": 3}', "<b>no</b>", messages=messages, model="small", temperature=0.5)
    found = (await answer(tmp_path, document.pack())).json()
    assert found["replies"] == ['{"progress": 3}', "<b>no</b>"]
    assert [one["text"] for one in found["messages"]] == ["You judge.", "room 1 → 2\n[picture sha256:00ff]"]
    assert json.loads(found["settings"]) == {"model": "small", "temperature": 0.5}
    assert (found["judge"], found["complete"]) == ("state", True)


async def test_the_answer_says_how_to_keep_replies_where_none_are(tmp_path: Path) -> None:
    response = await answer(tmp_path, None)
    assert response.status_code == 404
    assert "start the system again with ZELDA_JUDGE__KEEP_REPLIES=true" in response.json()["detail"]


async def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    response = await answer(tmp_path, b"no gzip")
    assert response.status_code == 500
    assert response.json()["detail"].startswith(f"{keys.replies(RUN, PROMPT)} is not a gzip file")


async def test_an_object_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    response = await answer(tmp_path, kept("", messages=["0" * 5_000_000]).pack())
    assert response.status_code == 500
    assert "replies unpack to more than" in response.json()["detail"]


async def test_long_texts_are_cut_and_replies_come_first(tmp_path: Path) -> None:
    document = kept("r" * 90_000, "s" * 90_000, messages=[{"role": "user", "content": "p" * 90_000}])
    response = await answer(tmp_path, document.pack())
    found = response.json()
    assert [len(text) for text in found["replies"]] == [90_000, 90_000]
    assert len(found["messages"][0]["text"]) == MAX_CHARACTERS - 180_000
    assert (found["settings"], found["complete"]) == ("", False)
    assert len(response.content) < MAX_CHARACTERS + 1_000


def test_a_prompt_of_another_form_is_shown_as_json() -> None:
    strange = shorten(kept("x", messages={"role": 1}))
    assert [(one.role, one.text) for one in strange.messages] == [("1", "null")]
    mixed = shorten(kept("x", messages=["text", {"role": "user", "content": [7, {"type": "audio"}]}]))
    assert [one.text for one in mixed.messages] == ["text", '7\n{"type": "audio"}']
