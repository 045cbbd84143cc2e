"""Takeovers in a running game: the planner acts in dialogs and puzzles, and control always returns to the policy."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.trainer.domain.policy_switch import SwitchLimits
from services.trainer.executor.macros import Interact, Macro, MoveTo
from services.trainer.executor.outcome import STEPS, GameView
from services.trainer.planning.plan import NoPlan, Plan, PlanMaker
from services.trainer.planning.puzzle_room import BUTTON, PuzzleParts
from services.trainer.planning.rules_planner import RulesPlanner, plan_pushes
from services.trainer.planning.takeover import Takeover
from services.trainer.recording.recorder import RunnerRecorder
from shared.contracts.driver import Need
from shared.game.decoding.grid import Grid
from shared.game.emulator.emulator import Emulator
from shared.game.ram import offsets
from shared.game.recording.replay import verify
from shared.game.recording.segment import PLANNER, POLICY, read_segment
from tests.unit.executor.played import Played, played
from tests.unit.planning.switch_endings import successes
from tests.unit.recording.recording_settings import every_segment

LIMITS = SwitchLimits(cool_down=20)
BOTH: tuple[Need, ...] = ("dialog", "puzzle")
PUZZLES: tuple[Need, ...] = ("puzzle",)
DIALOGS: tuple[Need, ...] = ("dialog",)
UP, A = 1, 5


class FixedPlanner:
    """Answers after some questions for an answer, always the same."""

    def __init__(self, plan: Plan | NoPlan | None, after: int = 0) -> None:
        self._plan, self._after = plan, after
        self.asked: list[Need] = []

    def ask(self, view: GameView, need: Need) -> None:
        self.asked.append(need)
        self._left = self._after

    def waits(self) -> bool:
        return False

    def answer(self) -> Plan | NoPlan | None:
        self._left -= 1
        return self._plan if self._left < 0 else None


def plan(*macros: Macro, fallback: tuple[Macro, ...] = ()) -> Plan:
    return Plan("a test", macros, fallback)


@contextmanager
def assisted(
    world: str, planner: PlanMaker, needs: Collection[Need] = BOTH, late: int = 30
) -> Iterator[tuple[Played, Takeover]]:
    """A game at its start whose planner may take over."""
    with played(world) as game:
        takeover = Takeover(planner, LIMITS, needs, outdoors=True, late=late)
        game.session.takeover = takeover
        game.session.reset()
        yield game, takeover


def steps(game: Played, count: int, action: int = 0) -> list[int]:
    """Make steps with one action of the policy; who acted in each."""
    actors = []
    for _ in range(count):
        game.session.step(action)
        assert game.session.takeover is not None
        actors.append(game.session.takeover.actor)
    return actors


def test_dialog_is_read_by_the_planner_and_the_policy_acts_again() -> None:
    with assisted("garden", RulesPlanner()) as (game, takeover):
        game.put(0, 0x10, (4, 6))
        game.session.step(UP)
        game.session.step(A)
        actors = steps(game, 120)
        assert game.session.state.dialog is None
        assert game.session.state.inventory.sword == 1, "the whole dialog was read"
        assert PLANNER in actors
        assert actors[-1] == POLICY
        assert (takeover.switch.takeovers, successes(takeover.switch)) == (1, 1)
        assert takeover.facts()["planner_steps_share"] == pytest.approx(actors.count(PLANNER) / takeover.steps)


def test_rules_push_no_block_on_from_a_switch() -> None:
    """It would be the shortest way here, but a block on a switch stays there."""
    found = PuzzleParts(buttons=(), switches=((3, 3), (4, 3)), blocks=((2, 3), (3, 5)))
    with played("garden") as game:
        state = game.view.state._replace(grid=Grid(bytes(176), 10, 8), x=24, y=56)
        pushes = plan_pushes(GameView(state, game.session.image), found)
    blocks = set(found.blocks)
    for push in pushes or ():
        dx, dy = STEPS[push.direction]
        assert push.tile in blocks - set(found.switches)
        blocks = blocks - {push.tile} | {(push.tile[0] + dx, push.tile[1] + dy)}
    assert blocks == set(found.switches)


@pytest.mark.parametrize(("world", "room", "tile"), [("garden", (0, 0x02), (4, 6)), ("vale", (4, 0x71), (4, 6))])
def test_puzzle_is_solved_by_the_rules(world: str, room: tuple[int, int], tile: tuple[int, int]) -> None:
    with assisted(world, RulesPlanner()) as (game, takeover):
        game.put(*room, tile)
        actors = steps(game, 250)
        assert game.session.state.progress.room(*room) & 0x80, "the room is solved"
        assert PLANNER in actors
        assert successes(takeover.switch) == 1
        assert steps(game, 40) == [POLICY] * 40, "a solved room is no puzzle any more"


@pytest.mark.parametrize(
    "answer",
    [
        NoPlan("the model is away"),
        plan(MoveTo((0, 0))),
        plan(MoveTo((0, 0)), fallback=(MoveTo((9, 9)),)),
        plan(*[Interact()] * 3),
    ],
)
def test_wrong_plan_returns_control_to_the_policy(answer: Plan | NoPlan) -> None:
    with assisted("garden", FixedPlanner(answer), needs=PUZZLES) as (game, takeover):
        game.put(0, 0x02, (4, 6))
        before = takeover.switch.takeovers
        actors = steps(game, 80)
        assert takeover.switch.takeovers > before
        assert successes(takeover.switch) == 0
        assert takeover.switch.ending == "given_up"
        assert POLICY in actors[-LIMITS.cool_down :]


def test_policy_acts_while_a_plan_is_made_and_a_late_plan_is_given_up() -> None:
    planner = FixedPlanner(plan(MoveTo((4, 4))), after=10_000)
    with assisted("garden", planner, needs=PUZZLES) as (game, takeover):
        game.put(0, 0x02, (4, 6))
        assert steps(game, 100) == [POLICY] * 100
        assert takeover.switch.ending == "given_up"
        assert takeover.outcomes["late"] >= 1
        assert takeover.facts()["planner_wait_steps"] >= 30


def test_fallback_is_carried_out_after_a_failed_macro() -> None:
    with assisted("garden", FixedPlanner(plan(MoveTo((0, 0)), fallback=(MoveTo((2, 2)),)))) as (game, takeover):
        game.put(0, 0x02, (4, 6))
        steps(game, 40)
        assert takeover.outcomes["stuck"] >= 1
        assert takeover.outcomes["done"] >= 1


def test_planner_is_asked_only_about_what_the_run_names() -> None:
    planner = FixedPlanner(NoPlan("no"))
    with assisted("garden", planner, needs=DIALOGS) as (game, _):
        game.put(0, 0x02, (4, 6))
        steps(game, 40)
        assert planner.asked == []


def test_pressed_button_is_seen_though_no_wall_changes() -> None:
    planner = FixedPlanner(plan(Interact()))
    with assisted("garden", planner, needs=PUZZLES) as (game, takeover):
        game.put(0, 0x02, (4, 6))
        steps(game, 1)
        takeover.begin()
        planner.asked.clear()
        state, image = game.session.state, game.session.image
        tiles = slice(offsets.ROOM_LAYOUT, offsets.ROOM_LAYOUT + 176)
        pressed = image[: tiles.start] + image[tiles].replace(bytes([BUTTON]), b"\0") + image[tiles.stop :]
        for _ in range(2 * LIMITS.hysteresis):
            takeover.choose(state, pressed, UP)
        assert planner.asked == []
        for _ in range(LIMITS.hysteresis):
            takeover.choose(state, image, UP)
        assert planner.asked == ["puzzle"]


def test_new_episode_begins_with_the_policy_and_counts_again() -> None:
    with assisted("garden", RulesPlanner()) as (game, takeover):
        game.put(0, 0x02, (4, 6))
        steps(game, 20)
        assert takeover.switch.takeovers == 1
        game.session.reset()
        assert (takeover.switch.takeovers, takeover.steps, takeover.actor) == (0, 0, POLICY)


def test_segments_with_takeovers_name_the_actor_and_replay_exactly(tmp_path: Path) -> None:
    with assisted("garden", RulesPlanner()) as (game, _):
        session = game.session
        recorder = RunnerRecorder(session.config, every_segment(tmp_path))
        session.recording = recorder.for_env(0)
        session.reset()
        game.do("MOVE_TO 7,3")  # before the sign
        for step in range(1_200):
            session.step(A if step % 40 == 0 else UP)
        actors = list(session.episode.actors)
        recorder.close()
        game_of_session = session.game
    assert PLANNER in actors
    emulator = Emulator(game_of_session)
    found = []
    for path in sorted(tmp_path.rglob("*.zip")):
        segment = read_segment(path.read_bytes())
        assert segment.actors is not None
        assert len(segment.actors) == segment.manifest.steps
        found += segment.actors.tolist()
        verify(segment, emulator)
    emulator.close()
    assert len(found) == 1_200, "the open segment is not stored"
    assert found == actors[:1_200]
    assert found.count(PLANNER) > 40
