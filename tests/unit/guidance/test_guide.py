"""Suggestions in a running game: asked by drawn lots, shown while fresh, paid once, and never waited for in vain."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.domain.policy_switch import SwitchLimits
from services.trainer.domain.wait_gate import WaitGate
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.guidance.alignment_bonus import AlignmentBonus
from services.trainer.guidance.guide import EpisodeIdentity, Guide
from services.trainer.guidance.questions_in_flight import QuestionsInFlight
from services.trainer.guidance.schedule import AskingSchedule
from services.trainer.planning.question import ModelAnswer, PacedAnswers
from services.trainer.planning.rules_planner import RulesPlanner
from services.trainer.planning.takeover import Takeover
from shared.contracts.run import GuidanceConfig
from shared.game.decoding.names import ACTIONS
from shared.game.observation import with_counters
from shared.game.observation.with_guidance import NAMES, SIZE
from shared.game.recording.segment import GUIDANCE, POLICY
from tests.unit.planning.answers_by_hand import ByHand

UP, DOWN, LEFT = (ACTIONS.index(name) for name in ("up", "down", "left"))


@dataclass
class Guided:
    """A guided game, its answers and its clock."""

    session: GameSession
    answers: ByHand
    gate: WaitGate
    in_flight: QuestionsInFlight
    now: list[float] = field(default_factory=lambda: [0.0])
    guide: Guide = field(init=False)

    def answer(self, action: str = "down", number: int = -1) -> None:
        reply = {"action": action, "scene": "a path", "confidence": 0.75}
        self.answers.futures[number].set_result(ModelAnswer("answered", json.dumps(reply)))

    def step(self, action: int = 0) -> tuple[np.ndarray, float]:
        """One step; the part of the observation that shows the suggestion, and the reward."""
        result = self.session.step(action)
        return result.observation[-SIZE:].copy(), result.reward

    def ask(self) -> None:
        """Play until a question is asked."""
        before = len(self.answers.asked)
        for _ in range(600):
            self.step()
            if len(self.answers.asked) > before:
                return
        raise AssertionError("nothing was asked")

    @property
    def counts(self) -> dict[str, float]:
        return {name.removeprefix("suggestions_"): value for name, value in self.guide.facts().items()}


@contextmanager
def guided(most: int = 4, **config: float) -> Iterator[Guided]:
    session = GameSession(EnvConfig.of({"world": "garden", "difficulty": "harmless", "guided": True}))
    one = Guided(session, ByHand(), WaitGate(), QuestionsInFlight(most))
    takeover = Takeover(RulesPlanner(), SwitchLimits(), (), outdoors=True)
    settings = GuidanceConfig.model_validate({"mode": "model", "text_share": 0.2, "vision_share": 0.0, **config})
    paced = PacedAnswers(one.answers, lambda: one.now[0])

    def identity() -> EpisodeIdentity:
        number = session.episode.number
        return EpisodeIdentity(2, f"e{number}", (0, 2, 0, 0, number))

    one.guide = Guide(paced, settings, takeover, (one.in_flight, one.gate), identity, 4, lambda: one.now[0])
    session.takeover, session.guide = takeover, one.guide
    session.reset()
    try:
        yield one
    finally:
        session.close()


def test_suggestion_is_seen_next_and_paid_once_for_the_next_match() -> None:
    with guided(bonus_share=1.0, text_bonus=0.25) as one:
        one.session.episode.total = 10.0
        one.ask()
        assert not one.step(DOWN)[0].any(), "no answer: nothing is shown, and nothing was paid for this action"
        one.answer("down")
        shown, reward = one.step(DOWN)
        assert one.guide.paid == 0.0, "an action that was chosen before the answer is never paid"
        assert dict(zip(NAMES, shown, strict=True))["suggested_down"] == 1
        assert shown[-1] == 0.75
        assert 0.9 < shown[-2] < 1
        plain = one.step(LEFT)[0]
        assert plain[DOWN] == 1, "another action leaves the suggestion"
        assert one.guide.paid == 0.0
        before = one.session.episode.total
        part, reward = one.step(DOWN)
        assert one.guide.paid == 0.25
        assert reward == pytest.approx(one.session.episode.total - before + 0.25)
        assert not part.any()
        one.step(DOWN)
        assert one.guide.paid == 0.25
        assert one.counts["taken"] == one.counts["shown"] == 1


def test_actor_of_shown_steps_is_guidance() -> None:
    with guided() as one:
        one.ask()
        one.answer("up")
        for _ in range(3):
            one.step(LEFT)
        assert list(one.session.episode.actors[-2:]) == [GUIDANCE] * 2
        assert one.session.episode.actors[0] == POLICY


def test_suggestion_ages_and_ends() -> None:
    with guided() as one:
        one.ask()
        one.answer("up")
        fresh = [float(one.step(LEFT)[0][-2]) for _ in range(60)]
        shown = [value for value in fresh if value > 0]
        assert shown == sorted(shown, reverse=True)
        assert 28 <= len(shown) <= 31, "the switch ends guidance after 30 steps"


@pytest.mark.parametrize("late_s", [15.5, 100.0])
def test_answer_after_its_limit_is_stale(late_s: float) -> None:
    with guided() as one:
        one.ask()
        one.now[0] += late_s
        one.answer("up")
        assert not one.step()[0].any()
        assert one.counts["stale"] == 1


def test_answer_is_stale_after_as_many_seconds_of_play() -> None:
    with guided(text_share=0.02) as one:
        one.ask()
        for _ in range(15 * 60 // 4):
            one.step()
        one.answer("up")
        assert not one.step()[0].any()
        assert one.counts["stale"] == 1


def test_suggestion_of_another_room_is_not_shown() -> None:
    with guided() as one:
        one.ask()
        assert one.guide._asked is not None
        one.guide._asked.room = (9, 9)
        one.answer("up")
        assert not one.step()[0].any()
        assert one.counts["stale"] == 1


@pytest.mark.parametrize(
    "answer",
    [ModelAnswer("unavailable"), ModelAnswer("answered", "go up"), ModelAnswer("answered", '{"action": "start"}')],
)
def test_no_answer_no_bonus(answer: ModelAnswer) -> None:
    with guided(bonus_share=1.0) as one:
        one.session.episode.total = 10.0
        one.ask()
        one.answers.futures[-1].set_result(answer)
        for action in (UP, DOWN, LEFT, UP, DOWN, LEFT):
            assert not one.step(action)[0].any()
        assert one.guide.paid == 0.0
        assert one.counts["missing"] == 1


def test_questions_in_flight_are_capped_over_all_environments() -> None:
    with guided(most=1, text_share=0.5) as one:
        one.ask()
        assert one.in_flight.full
        for _ in range(30):
            one.step()
        assert len(one.answers.asked) == 1
        assert one.counts["skipped"] > 5
        one.answer("up")
        assert not one.in_flight.full
        one.ask()


def test_environment_stands_still_for_a_suggestion_only_within_its_limit() -> None:
    with guided(wait_s=2.0) as one:
        one.ask()
        assert one.session.holds()
        one.now[0] += 1.0
        one.answer("left")
        assert one.session.holds(), "the call that finds the answer shows it"
        assert one.session.observed()[-SIZE:][LEFT] == 1
        assert not one.session.holds()
        one.session.episode.total = 10.0
        one.step(LEFT)
        assert one.counts["taken"] == 1
        if not one.session.holds():
            one.ask()
        one.now[0] += 2.1
        assert not one.session.holds()
        assert not one.gate.is_open(one.now[0])


def test_same_episode_asks_about_the_same_states() -> None:
    def asked(answer: bool) -> list[tuple[str, str, int]]:
        with guided(vision_share=0.1) as one:
            for step in range(120):
                one.step(UP if step % 3 else LEFT)
                if one.answers.futures and not one.answers.futures[-1].done():
                    one.answers.futures[-1].set_result(ModelAnswer("unavailable" if answer else "refused"))
        return [(question.mode, question.place, question.seed) for question in one.answers.asked]

    assert asked(True) == asked(False)
    assert {mode for mode, _, _ in asked(True)} == {"text", "vision"}


def test_vision_sends_a_jpeg_of_the_asked_state() -> None:
    with guided(text_share=0.0, vision_share=0.3) as one:
        one.ask()
        picture = one.answers.asked[-1].picture
    assert picture is not None
    assert picture.startswith(b"\xff\xd8\xff")
    assert 1_000 < len(picture) < 60_000


def test_model_that_is_away_is_not_asked_and_makes_no_pictures() -> None:
    with guided(text_share=0.0, vision_share=0.5) as one:
        one.ask()
        one.answers.futures[-1].set_result(ModelAnswer("unavailable", pause_s=30))
        drawn = 0
        for _ in range(40):
            drawn += one.guide.needs_picture(one.session.episode.steps + 1)
            one.step()
        assert (drawn, len(one.answers.asked)) == (0, 1)
        one.now[0] += 31
        one.ask()


def test_observation_without_a_guide_has_an_empty_part() -> None:
    session = GameSession(EnvConfig.of({"world": "garden", "guided": True}))
    seen = session.reset()
    assert seen.shape == (with_counters.SIZE + SIZE,)
    assert not seen[-SIZE:].any()
    plain = GameSession(EnvConfig.of({"world": "garden"}))
    assert np.array_equal(plain.reset(), seen[:-SIZE])
    session.close()
    plain.close()


@pytest.mark.parametrize(("text", "vision"), [(0.02, 0.03), (0.0, 0.03), (0.3, 0.0)])
def test_share_of_asked_steps_is_the_configured_probability(text: float, vision: float) -> None:
    drawn = AskingSchedule((1, 2, 3), text, vision)
    found = [drawn.next() for _ in range(20_000)]
    steps = sum(distance for distance, _ in found)
    kinds = [kind for _, kind in found]
    assert kinds.count("text") / steps == pytest.approx(text, abs=0.004)
    assert kinds.count("vision") / steps == pytest.approx(vision, abs=0.004)
    again = AskingSchedule((1, 2, 3), text, vision)
    assert [again.next() for _ in range(20_000)] == found


def test_no_step_is_asked_about_where_the_shares_are_zero() -> None:
    with guided(text_share=0.0, vision_share=0.0) as one:
        for _ in range(200):
            one.step()
        assert (len(one.answers.asked), one.counts["skipped"]) == (0, 0)


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_guide_is_called_only_where_it_has_something_to_do(share: float) -> None:
    with guided(text_share=share, most=1) as one:
        quiet_before = one.guide.next_step
        one.ask()
        asked = one.session.episode.steps
        assert asked >= quiet_before, "no question was asked before the step that the guide named"
        assert one.guide.next_step <= asked + 1, "a question is in flight"
        one.answer("up")
        one.step(LEFT)
        assert one.guide.next_step <= asked + 2, "a suggestion is shown"


@given(
    st.floats(0, 1),
    st.lists(st.tuples(st.floats(0, 100), st.floats(-50, 50)), max_size=40),
)
def test_bonus_never_exceeds_its_share_of_the_return(share: float, payments: list[tuple[float, float]]) -> None:
    bonus, total = AlignmentBonus(share), 0.0
    for amount, reward in payments:
        total += reward
        before = bonus.paid
        paid = bonus.pay(amount, total)
        assert 0 <= paid <= amount
        assert bonus.paid == before + paid
        if paid:
            assert bonus.paid <= share * total * (1 + 1e-9)
    before = bonus.paid
    assert bonus.settle(total) == pytest.approx(bonus.paid - before)
    assert 0 <= bonus.paid <= max(0.0, share * total) * (1 + 1e-9) + 1e-9
