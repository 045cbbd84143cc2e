"""The models that advise the arm `guided`: checked before the first trial, and named in the plan."""

from pathlib import Path
from typing import Final

from studies.arms import ARMS
from studies.plan import InvalidStudy, LabelSettings, StudyPlan

RULES: Final = "rules"


def with_advisers(plan: StudyPlan, path: Path | None) -> StudyPlan:
    """Return the plan with the models of this planner file, or of a rules server; InvalidStudy for an unusable file."""
    if not any(ARMS[name].guidance for name in plan.arms):
        if path is not None:
            raise InvalidStudy("--planner: no arm of this study asks models; add --arms visits,guided.")
        return plan
    found = LabelSettings(advisers=RULES)
    if path is not None:
        found = LabelSettings(advisers=_models(plan, path), planner_file=str(path))
    return plan.model_copy(update={"labels": plan.labels.joined(found)})


def _models(plan: StudyPlan, path: Path) -> str:
    """The models that the plan's runs ask under guidance, by mode."""
    from services.trainer.planning.assembly import asked_modes, missing_routes
    from services.trainer.planning.planner_file import load_planner_file
    from shared.config.yaml_document import ConfigError

    guided = plan.run.model_copy(update={"guidance": plan.run.guidance.model_copy(update={"mode": "model"})})
    try:
        file = load_planner_file(path, "")
    except ConfigError as error:
        raise InvalidStudy(f"--planner: {error}.") from error
    missing = missing_routes(guided, file)
    if missing is not None:
        raise InvalidStudy(f"--planner {path}: {missing}.")
    return ", ".join(f"{mode}: {file.routes[mode].model}" for mode in asked_modes(guided))
