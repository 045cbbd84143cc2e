"""Builds the takeover of one environment from the run's configuration."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.policy_switch import Need, SwitchLimits
from services.trainer.env.game_session import GameSession
from services.trainer.planning.plan import PlanMaker
from services.trainer.planning.question import QuestionMode
from services.trainer.planning.takeover import PLANNER, Takeover
from shared.contracts.run import PlannerConfig, RunConfig
from shared.game.games.game import Game


def takeover_for(config: PlannerConfig, game: Game, planner: PlanMaker) -> Takeover | None:
    """A new takeover, for one environment; None for a run without a planner."""
    if config.mode == "none":
        return None
    needs: list[Need] = []
    if config.dialogs:
        needs.append("dialog")
    if config.puzzles:
        needs.append("puzzle")
    limits = SwitchLimits(
        dialog_steps=config.dialog_steps, puzzle_steps=config.puzzle_steps, cool_down=config.cool_down_steps
    )
    return Takeover(planner, limits, needs, outdoors="oracle" not in game.capabilities)


def acted_by_policy(sessions: Sequence[GameSession]) -> NDArray[np.bool_]:
    """Whether the last action of each environment was the policy's."""
    return np.array([session.takeover is None or session.takeover.actor != PLANNER for session in sessions])


def asked_modes(run: RunConfig) -> tuple[QuestionMode, ...]:
    """What the run asks models about; empty for a run without models."""
    planner = run.planner
    asked: dict[QuestionMode, bool] = {
        "dialog": planner.mode == "model" and planner.dialogs,
        "puzzle": planner.mode == "model" and planner.puzzles,
    }
    return tuple(mode for mode, wanted in asked.items() if wanted)
