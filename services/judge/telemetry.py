"""Metrics of the judge service. Labels are judges and routes, which are few, and runs until they end (`OF_RUNS`)."""

from shared.llm.route_metrics import RouteMetrics
from shared.state.run_series import RunSeries
from shared.telemetry import metrics

ROUTES = RouteMetrics("judge")

SEGMENTS = metrics.counter("judge_segments_total", "Segments by outcome.", ["status"])
RESULTS = metrics.counter("judge_results_total", "Judges' results by status.", ["judge", "status"])
VOTES = metrics.counter("judge_votes_total", "Votes by validity.", ["judge", "valid"])
EXTRA = metrics.counter("judge_extra_votes_total", "Votes requested because earlier ones were split.", ["judge"])
COPIES = metrics.counter("judge_identical_votes_total", "Requests whose replies were all the same text.", ["judge"])
CACHED = metrics.counter("judge_cache_hits_total", "Results taken from an identical segment.", ["judge"])
TOKENS = metrics.counter("judge_tokens_total", "Tokens by kind: prompt, cached, output.", ["judge", "kind"])
MONEY = metrics.counter("judge_money_total", "Estimated money spent, in the currency of the prices.", ["judge"])
BUDGET = metrics.counter("judge_budget_refusals_total", "Calls rejected because the budget is used up.", ["judge"])
BOUND = metrics.gauge("judge_token_bound_ratio", "Prompt tokens of the last call by their upper bound.", ["judge"])
PAIRS = metrics.counter("judge_pairs_total", "Pairs of segments that were compared as labels of a reward model.")
SEGMENT_SECONDS = metrics.seconds("judge_segment_seconds", "Time to judge one segment.")

AGREEMENT = metrics.gauge(
    "judge_agreement_ratio", "Share of unanimous dimensions in the run's current epoch.", ["run", "judge"]
)
ALPHA = metrics.gauge(
    "judge_krippendorff_alpha", "Krippendorff's alpha over the votes of the run's current epoch.", ["run", "judge"]
)
CORRELATION = metrics.gauge(
    "judge_progress_correlation",
    "Rank correlation with true progress in the segment or after.",
    ["run", "judge", "when"],
)
DRIFT = metrics.gauge("judge_canary_drift", "Mean change of the canary set's scores since epoch 0.", ["run", "judge"])
POSITION_BIAS = metrics.gauge(
    "judge_position_bias", "Share of pairs won by the clip shown first, minus one half.", ["run"]
)
INCONSISTENT = metrics.gauge(
    "judge_position_inconsistency_ratio", "Share of pairs whose winner changed with the order.", ["run"]
)
EXHAUSTED = metrics.gauge("judge_budget_exhausted_state", "1 while an epoch's judge budget is used up.", ["run"])
OF_RUNS = RunSeries(AGREEMENT, ALPHA, CORRELATION, DRIFT, POSITION_BIAS, INCONSISTENT, EXHAUSTED)
