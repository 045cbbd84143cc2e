"""Is it learning? True progress first (milestones without exploration), then its causes, then their reliability."""

from deploy.generate.alerts import ALPHA_OF_NOISE, KL, KL_TOO_LARGE
from deploy.generate.dashboards.model import Dashboard, DashboardPanel, Query, panel
from deploy.generate.leader import from_leader
from shared.contracts.driver import SUCCESSES

EPOCHS = "some epochs"
SUCCEEDED = f'{{ending=~"{"|".join(sorted(SUCCESSES))}"}}'


def evaluation_and_training(figure: str) -> tuple[Query, ...]:
    """One figure, without and with exploration."""
    selector = f'{{figure="{figure}"}}'
    return (
        Query(from_leader("epoch_evaluation_value", selector), "without exploration"),
        Query(from_leader("epoch_training_value", selector), "while training"),
    )


ACHIEVEMENT = (
    DashboardPanel(
        "Milestones per episode",
        evaluation_and_training("milestones_mean"),
        "True progress, hidden from policy and judges.",
    ),
    DashboardPanel("Return per episode", evaluation_and_training("return_mean"), "Sum of all reward terms."),
    panel("Newest epoch", from_leader("epoch_number"), "Finished epochs, from 0.", kind="stat"),
    panel(
        "Active runs", f"sum({from_leader('coordinator_active_runs')})", "Created, running or stopping.", kind="stat"
    ),
)
EXPLORATION = (
    DashboardPanel(
        "Unique rooms per episode",
        (
            Query(from_leader("epoch_training_value", '{figure="rooms_mean"}'), "mean"),
            Query(from_leader("epoch_training_value", '{figure="rooms_max"}'), "best"),
        ),
        "Rooms that the agent visits.",
    ),
    DashboardPanel("Tiles per episode", evaluation_and_training("tiles_mean"), "Tiles that the agent steps on."),
    DashboardPanel("Length of episodes", evaluation_and_training("length_mean"), "Steps until the episode ended."),
)
POLICY = (
    panel("Return by term", from_leader("epoch_reward_term_value"), "Rewards that the agent earns.", legend="{{term}}"),
    panel(
        "KL of an update",
        from_leader("epoch_learner_value", KL),
        f"Of the last batch. Above {KL_TOO_LARGE} updates are too large.",
    ),
    panel(
        "Entropy",
        from_leader("epoch_learner_value", '{figure="entropy"}'),
        "Of the last batch. Near 0 the policy does not explore.",
    ),
    panel(
        "Losses",
        from_leader("epoch_learner_value", '{figure=~"policy_loss|value_loss"}'),
        "Of the last batch.",
        legend="{{figure}}",
    ),
)
REWARD_MODEL = (
    DashboardPanel(
        "Reward model accuracy",
        (
            Query(from_leader("epoch_reward_model_accuracy_ratio"), "model"),
            Query(from_leader("reward_model_baseline_ratio"), "{{baseline}}"),
        ),
        "Held-out confident pairs; it must beat its baselines.",
        "percentunit",
        needs=EPOCHS,
    ),
    panel(
        "Calibration error",
        from_leader("reward_model_ece_ratio"),
        "Difference of predicted and observed probability.",
        "percentunit",
        needs=EPOCHS,
    ),
    panel(
        "Spread", from_leader("reward_model_spread_value"), "Near 0 the model values all states alike.", needs=EPOCHS
    ),
    panel(
        "Age",
        from_leader("epoch_reward_model_age_epochs"),
        "Judged epochs since the scores of the shaping model.",
        needs=EPOCHS,
    ),
)
ASSISTED = "a planner or guidance"
ASSISTANCE = (
    panel(
        "Takeovers",
        from_leader("epoch_takeovers"),
        "In the present epoch, by how they ended.",
        needs=ASSISTED,
        legend="{{need}} {{ending}}",
    ),
    panel(
        "Takeovers that succeeded",
        f"sum by (run, need) ({from_leader('epoch_takeovers', SUCCEEDED)}) / sum by (run, need) "
        f"({from_leader('epoch_takeovers')})",
        "Share whose plan was carried out, or whose dialog or puzzle was solved.",
        "percentunit",
        "{{need}}",
        needs=ASSISTED,
    ),
    panel(
        "Suggestions",
        from_leader("epoch_suggestions"),
        "In the present epoch, by outcome.",
        needs=ASSISTED,
        legend="{{outcome}}",
    ),
    panel(
        "Questions to models",
        from_leader("epoch_planner_calls"),
        "Of planner and guidance in the present epoch, by outcome.",
        needs=ASSISTED,
        legend="{{mode}} {{outcome}}",
    ),
    panel(
        "Time of an answer",
        from_leader("epoch_planner_answer_seconds"),
        "Mean of the present epoch.",
        "s",
        "{{mode}}",
        needs=ASSISTED,
    ),
    panel(
        "Breakers",
        from_leader("epoch_planner_breaker_state"),
        "0 closed, 1 half-open, 2 open: the route rests.",
        needs=ASSISTED,
        legend="{{mode}}",
    ),
)
TRUST = (
    panel(
        "Judge agreement", "zelda_judge_agreement_ratio", "Share of unanimous dimensions.", "percentunit", "{{judge}}"
    ),
    panel(
        "Krippendorff's alpha",
        "zelda_judge_krippendorff_alpha",
        f"Below {ALPHA_OF_NOISE} votes are mostly noise.",
        needs=EPOCHS,
        legend="{{judge}}",
    ),
    panel(
        "Judges against true progress",
        "zelda_judge_progress_correlation",
        "Rank correlation with milestones.",
        needs=EPOCHS,
        legend="{{judge}} {{when}}",
    ),
    panel(
        "Drift on the canary set",
        "zelda_judge_canary_drift",
        "Change since epoch 0 on the same segments.",
        needs=EPOCHS,
        legend="{{judge}}",
    ),
    panel("Alarm", from_leader("epoch_alarm_state"), "1: the run withdrew reward models.", kind="stat"),
)

DASHBOARD = Dashboard(
    "learning",
    "Zelda RLAIF: is it learning?",
    "Does the agent reach more milestones, and can its rewards be trusted?",
    (
        ("Achievement", ACHIEVEMENT),
        ("Exploration", EXPLORATION),
        ("Policy", POLICY),
        ("Reward model", REWARD_MODEL),
        ("Planner and guidance", ASSISTANCE),
        ("Judges", TRUST),
    ),
)
