"""Segments of guided play: they name steps with a suggestion, replay exactly, and hold what judges always see."""

import json
from concurrent.futures import Future
from pathlib import Path

import numpy as np

from services.trainer.domain.policy_switch import SwitchLimits
from services.trainer.domain.wait_gate import WaitGate
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.guidance.guide import EpisodeIdentity, Guide
from services.trainer.guidance.questions_in_flight import QuestionsInFlight
from services.trainer.planning.question import ModelAnswer, PacedAnswers, Question, answered
from services.trainer.planning.rules_planner import RulesPlanner
from services.trainer.planning.takeover import Takeover
from services.trainer.recording.recorder import RunnerRecorder
from shared.contracts.run import GuidanceConfig
from shared.game.emulator.emulator import Emulator
from shared.game.recording.replay import verify
from shared.game.recording.segment import GUIDANCE, POLICY, read_segment
from tests.unit.recording.recording_settings import every_segment

GUIDED = GuidanceConfig(mode="model", text_share=0.02, vision_share=0.0)


class Down:
    """A model that always suggests to go down."""

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        return answered(ModelAnswer("answered", json.dumps({"action": "down", "scene": "x", "confidence": 1})))


def recorded(folder: Path, steps: int) -> list[bytes]:
    """Archives of guided play in the garden."""
    session = GameSession(EnvConfig.of({"world": "garden", "guided": True}))
    takeover = Takeover(RulesPlanner(), SwitchLimits(), (), outdoors=True)

    def identity() -> EpisodeIdentity:
        return EpisodeIdentity(0, f"e{session.episode.number}", (session.episode.number,))

    session.takeover = takeover
    session.guide = Guide(PacedAnswers(Down()), GUIDED, takeover, (QuestionsInFlight(1), WaitGate()), identity, 4)
    recorder = RunnerRecorder(session.config, every_segment(folder))
    session.recording = recorder.for_env(0)
    session.reset()
    rng = np.random.default_rng(1)
    for _ in range(steps):
        session.step(int(rng.integers(0, 7)))
    recorder.close()
    session.close()
    return [path.read_bytes() for path in sorted(folder.rglob("*.zip"))]


def test_guided_segments_replay_and_name_steps_with_a_suggestion(tmp_path: Path) -> None:
    archives = recorded(tmp_path, 900)
    session = GameSession(EnvConfig.of({"world": "garden"}))
    emulator = Emulator(session.game)
    found: set[int] = set()
    for archive in archives:
        segment = read_segment(archive)
        assert segment.actors is not None
        assert segment.observations.shape[1] == 128, "judges and reward models see what they always see"
        found |= set(segment.actors.tolist())
        verify(segment, emulator)
    emulator.close()
    session.close()
    assert found == {POLICY, GUIDANCE}
