"""Metrics of the reward model service, labelled by run until it ends (`OF_RUNS`), never by epoch."""

from shared.state.run_series import RunSeries
from shared.telemetry import metrics

TRAINING_SECONDS = metrics.seconds("rewardmodel_training_seconds", "Time to fit and evaluate a model.")
TRAINED = metrics.counter("rewardmodel_trained_total", "Cards committed, by whether the gates passed.", ["passed"])
ACCURACY = metrics.gauge("rewardmodel_accuracy_share", "Held-out accuracy on confident pairs.", ["run"])
SEGMENTS = metrics.gauge("rewardmodel_segments_used", "Judged segments in the last training.", ["run"])
GATES = metrics.gauge("rewardmodel_gate_passed", "1 if the last model passed the gate.", ["run", "gate"])
OF_RUNS = RunSeries(ACCURACY, SEGMENTS, GATES)
SKIPPED = metrics.counter("rewardmodel_skipped_total", "Objects that could not be used.", ["kind"])
WAITING = metrics.gauge("rewardmodel_waiting_epochs", "Finished epochs that wait for scores.")
