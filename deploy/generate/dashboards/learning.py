"""Is it learning? Truth first (milestones without exploration), then what drives it, then whether to trust that."""

from deploy.generate.alerts import ALPHA_OF_NOISE, KL, KL_TOO_LARGE
from deploy.generate.dashboards.model import Dashboard, Panel, Query, one
from deploy.generate.leader import leading

EPOCHS = "some epochs"


def pair(figure: str) -> tuple[Query, ...]:
    """One figure with and without exploration."""
    selector = f'{{figure="{figure}"}}'
    return (
        Query(leading("epoch_evaluation_value", selector), "without exploration"),
        Query(leading("epoch_training_value", selector), "while training"),
    )


ACHIEVEMENT = (
    Panel("Milestones per episode", pair("milestones_mean"), "Truth for measuring; neither policy nor judges see it."),
    Panel("Return per episode", pair("return_mean"), "Sum of all reward terms."),
    one("Newest epoch", leading("epoch_number"), "Finished epochs, from 0.", kind="stat"),
    one("Runs at work", f"sum({leading('coordinator_active_runs')})", "Created, running or stopping.", kind="stat"),
)
EXPLORATION = (
    Panel(
        "Unique rooms per episode",
        (
            Query(leading("epoch_training_value", '{figure="rooms_mean"}'), "mean"),
            Query(leading("epoch_training_value", '{figure="rooms_max"}'), "best"),
        ),
        "How far the agent gets around.",
    ),
    Panel("Tiles per episode", pair("tiles_mean"), "Ground covered."),
    Panel("Length of episodes", pair("length_mean"), "Steps until the episode ended."),
)
POLICY = (
    one("Return by term", leading("epoch_reward_term_value"), "Which rewards the agent earns.", legend="{{term}}"),
    one("KL of an update", leading("epoch_learner_value", KL), f"Above {KL_TOO_LARGE} updates are too large."),
    one("Entropy", leading("epoch_learner_value", '{figure="entropy"}'), "Near 0 the policy no longer explores."),
    one(
        "Losses",
        leading("epoch_learner_value", '{figure=~"policy_loss|value_loss"}'),
        "Of the last updates.",
        legend="{{figure}}",
    ),
)
REWARD_MODEL = (
    Panel(
        "Reward model accuracy",
        (
            Query(leading("epoch_reward_model_accuracy_ratio"), "model"),
            Query(leading("reward_model_baseline_ratio"), "{{baseline}}"),
        ),
        "Held-out confident pairs; it must beat its baselines.",
        "percentunit",
        needs=EPOCHS,
    ),
    one(
        "Calibration error",
        leading("reward_model_ece_ratio"),
        "Distance of predicted and true probability.",
        "percentunit",
        needs=EPOCHS,
    ),
    one("Spread", leading("reward_model_spread_value"), "Near 0 the model tells all states alike.", needs=EPOCHS),
    one(
        "Age",
        leading("epoch_reward_model_age_epochs"),
        "Epochs since the scores behind the shaping model.",
        needs=EPOCHS,
    ),
)
TRUST = (
    one("Judge agreement", "zelda_judge_agreement_ratio", "Unanimous dimensions.", "percentunit", "{{judge}}"),
    one(
        "Krippendorff's alpha",
        "zelda_judge_krippendorff_alpha",
        f"Below {ALPHA_OF_NOISE} votes are mostly noise.",
        needs=EPOCHS,
        legend="{{judge}}",
    ),
    one(
        "Judges against true progress",
        "zelda_judge_progress_correlation",
        "Rank correlation with milestones.",
        needs=EPOCHS,
        legend="{{judge}} {{when}}",
    ),
    one(
        "Drift on the canary set",
        "zelda_judge_canary_drift",
        "Change since epoch 0 on the same segments.",
        needs=EPOCHS,
        legend="{{judge}}",
    ),
    one("Alarm", leading("epoch_alarm_state"), "1: reward models were withdrawn.", kind="stat"),
)

DASHBOARD = Dashboard(
    "learning",
    "Zelda RLAIF: is it learning?",
    "Does the agent reach more milestones, and may the rewards that drive it be trusted?",
    (
        ("Achievement", ACHIEVEMENT),
        ("Exploration", EXPLORATION),
        ("Policy", POLICY),
        ("Reward model", REWARD_MODEL),
        ("Judges", TRUST),
    ),
)
