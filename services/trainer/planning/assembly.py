"""Builds the takeover of one environment from the run's configuration."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.policy_switch import SwitchLimits
from services.trainer.env.game_session import GameSession
from services.trainer.planning.plan import PlanMaker
from services.trainer.planning.planner_file import PlannerFile
from services.trainer.planning.takeover import Takeover
from shared.contracts.driver import Need, QuestionMode
from shared.contracts.run import RunConfig
from shared.game.games.game import Game


def is_assisted(run: RunConfig) -> bool:
    """Whether somebody beside the policy acts or advises."""
    return run.planner.mode != "none" or run.guidance.asks


def takeover_for(run: RunConfig, game: Game, planner: PlanMaker) -> Takeover | None:
    """A new takeover, for one environment; None for a run without assistance. Guidance alone asks no planner."""
    if not is_assisted(run):
        return None
    config = run.planner
    wanted: dict[Need, bool] = {"dialog": config.dialogs, "puzzle": config.puzzles}
    needs = [need for need, asked in wanted.items() if asked and config.mode != "none"]
    limits = SwitchLimits(
        dialog_steps=config.dialog_steps, puzzle_steps=config.puzzle_steps, cool_down=config.cool_down_steps
    )
    return Takeover(planner, limits, needs, outdoors="oracle" not in game.capabilities)


def acted_by_policy(sessions: Sequence[GameSession]) -> NDArray[np.bool_]:
    """Whether the policy's choice took effect in the last step of each environment."""
    return np.array([session.takeover is None or session.takeover.decided for session in sessions])


def missing_routes(run: RunConfig, file: PlannerFile) -> str | None:
    """What the planner file lacks for this run, as one sentence without its end; None if it lacks nothing."""
    missing = [mode for mode in asked_modes(run) if mode not in file.routes]
    if not missing:
        return None
    return (
        f"the run asks models about {', '.join(missing)}, and the planner file has no such route: add it, or switch "
        "off what asks"
    )


def asked_modes(run: RunConfig) -> tuple[QuestionMode, ...]:
    """What the run asks models about; empty for a run without models."""
    planner = run.planner
    asked: dict[QuestionMode, bool] = {
        "dialog": planner.mode == "model" and planner.dialogs,
        "puzzle": planner.mode == "model" and planner.puzzles,
        "text": run.guidance.asks and run.guidance.text_share > 0,
        "vision": run.guidance.asks and run.guidance.vision_share > 0,
    }
    return tuple(mode for mode, wanted in asked.items() if wanted)
