"""The facts of a segment, one by one: what counts, what does not, and what is unknown."""

from typing import Any

import pytest

from services.judge.domain.examples.chat import chat_bound
from services.judge.domain.facts.events import detect_events
from services.judge.domain.facts.states import MAX_WORD, StepState
from services.judge.domain.facts.summary import compute_facts
from services.judge.domain.facts.timeline import PromptTooLong, render
from services.judge.domain.prompts import facts_budget, rubric_message, vote_messages
from services.judge.domain.rubric import reply_schema
from shared.contracts.scores import DIMENSIONS
from shared.llm.tokens import image_token_bound
from tests.unit.judge.segment_factory import facts, states

Changes = dict[int, dict[str, Any]]


def described(changes: Changes) -> list[tuple[int, str]]:
    """Step and words of every event."""
    return [(event.step, event.what) for event in detect_events(states(changes, steps=60), {})]


def test_the_first_step_is_compared_with_the_state_before_it() -> None:
    before = states(steps=1)[0]
    after = states({0: {"treasures": ["sword"], "health": 8, "room": 0x13, "rooms_visited": 2}}, steps=60)
    found = [(event.step, event.what) for event in detect_events(after, {}, before)]
    entered = "entered room 0:13 (overworld), never seen before"
    assert found == [(0, entered), (0, 'obtained "sword"'), (0, "lost 4 quarter hearts")]
    known = compute_facts("bramble:vale", 4, after, {}, before)
    assert known.start.endswith("items: none")
    assert {name: known.totals[name] for name in ("items obtained", "times hurt", "rooms never seen before")} == {
        "items obtained": 1,
        "times hurt": 1,
        "rooms never seen before": 1,
    }
    assert known.totals["steps"] == 60
    assert detect_events(after, {}) == [], "an older archive does not say what came before"


def test_small_key_counts_inside_its_dungeon_and_not_at_the_door() -> None:
    keys: Changes = {
        0: {"in_dungeon": True, "keys": 1},
        10: {"keys": 2},
        20: {"keys": 1},
        30: {"in_dungeon": False, "keys": 0},
    }
    assert described(keys) == [(10, "found a small key (now 2)"), (20, "used a small key")]
    totals = facts(keys).totals
    assert (totals["small keys found"], totals["small keys used"]) == (1, 1)


def test_dungeon_is_entered_once_and_only_from_outside() -> None:
    assert described({10: {"in_dungeon": True}}) == [(10, "entered a dungeon")]
    assert described({0: {"in_dungeon": True}}) == []
    assert described({0: {"in_dungeon": None}, 10: {"in_dungeon": True}}) == []
    assert facts({10: {"in_dungeon": True}}).totals["dungeons entered"] == 1


def test_room_marked_some_steps_later_is_a_new_room() -> None:
    assert described({10: {"room": 0x13}, 18: {"rooms_visited": 2}})[0][1].endswith("never seen before")
    assert described({10: {"room": 0x13}, 40: {"rooms_visited": 2}})[0][1].endswith("known from before this clip")


def test_supplies_are_not_items_and_a_lost_heart_container_is_not_a_gain() -> None:
    got: Changes = {10: {"treasures": ["rupees", "hearts", "sword"]}, 20: {"max_health": 16}, 30: {"max_health": 12}}
    assert described(got) == [(10, 'obtained "sword"'), (20, "gained a heart container")]


def test_clip_duration_is_in_seconds_from_first_to_last_state() -> None:
    found = facts({150: {"rupees": 5}})
    assert found.seconds == 300 * 4 / 60
    assert "; 0 rupees, " in found.start
    assert "; 5 rupees, " in found.end


def test_longest_time_without_a_new_tile_excludes_the_step_onto_it() -> None:
    assert facts({}).totals["longest time without a new tile"] == 299
    assert facts({100: {"x": 120}}).totals["longest time without a new tile"] == 199
    assert facts({0: {"x": None}}).totals["longest time without a new tile"] is None


def test_a_move_within_a_tile_reaches_no_new_tile() -> None:
    totals = facts({100: {"x": 95}, 200: {"x": 96}}).totals  # from 80: tiles have 16 pixels
    assert (totals["tiles visited"], totals["longest time without a new tile"]) == (2, 199)


def test_rooms_that_the_game_does_not_name_are_unknown() -> None:
    assert facts({0: {"room": None}}).totals["rooms visited"] is None


def test_steps_in_any_menu_are_counted() -> None:
    assert facts({10: {"menu": 1}, 20: {"menu": 3}, 30: {"menu": 0}}).totals["steps in a menu"] == 20


def test_texts_differ_by_number_and_a_redrawn_line_is_the_same_text() -> None:
    boxes: Changes = {
        10: {"dialog": {"text": 1, "line": "HELLO THERE"}},
        12: {"dialog": {"text": 1, "line": "HELLO"}},
        14: {"dialog": {"text": 2, "line": "GOOD BYE"}},
        20: {"dialog": None},
    }
    shown = [(10, 'the game showed the text "HELLO THERE"'), (14, 'the game showed the text "GOOD BYE"')]
    assert described(boxes) == shown
    assert facts(boxes).totals["different texts shown"] == 2


def test_endless_text_is_cut() -> None:
    endless = {step: {"dialog": {"text": 1, "line": f"{step:02d} {'BLA ' * 10}"}} for step in range(10, 40)}
    ((_, words),) = described(endless)
    assert len(words) < 350


def test_texts_are_unknown_without_dialog_decoding() -> None:
    rows = [StepState.from_row({"group": 0, "room": 1, "x": 8, "y": 8}, step) for step in range(30)]
    assert compute_facts("some-game", 4, rows, {}).totals["different texts shown"] is None


@pytest.mark.parametrize("value", [True, "5", 5.0, [5]])
def test_value_of_another_type_is_unknown(value: object) -> None:
    assert StepState.from_row({"rupees": value}, 0).rupees is None


def test_long_name_is_cut_and_odd_letter_is_escaped() -> None:
    assert StepState.from_row({"area": "x" * 500}, 0).area == "x" * MAX_WORD
    assert render(facts({10: {"treasures": ["\u202eépée"]}}), 9_000).isascii()


def test_facts_without_room_are_refused_even_without_events() -> None:
    with pytest.raises(PromptTooLong, match="the budget is 300"):
        render(facts({}), 300)


def test_facts_without_room_for_any_event_do_not_say_that_nothing_happened() -> None:
    paid = facts({10: {"rupees": 5}})
    head, _, _ = render(paid, 9_000).partition("step 10")
    with pytest.raises(PromptTooLong, match=f"the budget is {len(head) + 5}"):
        render(paid, len(head) + 5)


def test_prompt_requests_the_reason_first_and_mentions_pictures_if_any() -> None:
    assert reply_schema(("progress",))["required"] == ["reason", "progress"]
    assert "pictures of it" in rubric_message(("novelty",), pictures=True)
    assert "pictures of it" not in rubric_message(("progress",), pictures=False)


def test_guidance_precedes_the_facts_and_has_a_heading_only_if_present() -> None:
    assert vote_messages(("progress",), "FACTS", "")[1]["content"] == "FACTS"
    guided = vote_messages(("progress",), "FACTS", " Mind the gap. ")[1]["content"]
    assert guided == "GUIDANCE FOR THIS PHASE\nMind the gap.\n\nFACTS"


@pytest.mark.parametrize("examples", [False, True])
@pytest.mark.parametrize("guidance", ["", " Mind the gap.\n"])
def test_facts_get_all_that_the_rest_of_a_prompt_leaves(guidance: str, examples: bool) -> None:
    room = facts_budget(DIMENSIONS, guidance, (), most=30_000, examples=examples)
    chat = vote_messages(DIMENSIONS, "x" * room, guidance, pictures=True, examples=examples)
    assert chat_bound(tuple(chat)) == 30_000


def test_picture_tokens_reduce_the_room_for_facts() -> None:
    assert image_token_bound(480, 432) == 18 * 16 + 2
    without, with_one = (facts_budget(("novelty",), "", sizes, most=9_000) for sizes in ((), ((480, 432),)))
    assert without - with_one == image_token_bound(480, 432)
