"""Is it flowing? Speed, queues, failures and leadership, from the emulator to the reward model."""

from deploy.generate.dashboards.model import Dashboard, DashboardPanel, Query, panel
from deploy.generate.leader import from_leader

VLLM = '{{__name__=~"(kserve_)?vllm:{name}"}}'
LLM = "models served on the cluster"


def quantile(share: float, histogram: str, by: str) -> str:
    """A quantile over five minutes of a histogram, by one label."""
    return f"histogram_quantile({share}, sum by (le, {by}) (rate({histogram}_bucket[5m])))"


def latency(title: str, histogram: str, by: str, help_text: str) -> DashboardPanel:
    """Median and 95th percentile of a histogram."""
    legend = "{{" + by + "}}"
    queries = (
        Query(quantile(0.5, histogram, by), f"{legend} p50"),
        Query(quantile(0.95, histogram, by), f"{legend} p95"),
    )
    return DashboardPanel(title, queries, help_text, "s")


PLAY = (
    panel("Steps per second", "sum(zelda_trainer_steps_per_second)", "Sum over all drivers."),
    DashboardPanel(
        "Drivers",
        (
            Query("sum(zelda_trainer_drivers)", "alive"),
            Query("sum(increase(zelda_trainer_driver_failures_total[1h]))", "failures in an hour"),
        ),
        "Training processes.",
    ),
    panel("Segments announced", "sum(rate(zelda_trainer_segments_announced_total[5m]))", "Recorded segments.", "cps"),
    panel(
        "Segments of the newest epoch",
        from_leader("epoch_segments"),
        "`dropped`: the store was too slow.",
        legend="{{status}}",
    ),
)
BUS = (
    panel(
        "Events waiting",
        "max by (consumer) (zelda_bus_events_pending)",
        "Published, but not yet handled.",
        legend="{{consumer}}",
    ),
    panel(
        "Events in progress",
        "sum by (consumer) (zelda_bus_events_in_flight)",
        "Deliveries that handlers work on.",
        legend="{{consumer}}",
    ),
    latency("Age of events", "zelda_bus_event_age_seconds", "consumer", "From publication to the start of handling."),
    latency("Handling time", "zelda_bus_handle_seconds", "consumer", "Publication of the results included."),
)
TROUBLE = (
    panel(
        "Deliveries by outcome",
        "sum by (outcome) (rate(zelda_bus_deliveries_total[5m]))",
        "`retried` and `dead` should be rare.",
        "cps",
        "{{outcome}}",
    ),
    panel(
        "Redeliveries",
        "sum by (consumer) (rate(zelda_bus_redeliveries_total[5m]))",
        "Deliveries after the first.",
        "cps",
        "{{consumer}}",
    ),
    panel(
        "Dead letters",
        "sum by (consumer) (zelda_bus_dead_letters_total)",
        "Inspect them with `zelda dlq`.",
        legend="{{consumer}}",
    ),
    DashboardPanel(
        "Repairs",
        (
            Query("sum(increase(zelda_coordinator_republished_total[1h]))", "republished events"),
            Query("sum(increase(zelda_bus_reconnects_total[1h]))", "reconnects"),
            Query(
                "sum(increase(zelda_service_background_restarts_total[1h])) or vector(0)", "restarted background tasks"
            ),
            Query("sum(increase(zelda_trainer_stale_fences_total[1h]))", "refused stale orders"),
        ),
        "Automatic repairs of the last hour.",
    ),
)
JUDGES = (
    latency("Judge calls", "zelda_judge_call_seconds", "route", "All attempts of a call."),
    panel(
        "Segments judged", "sum by (status) (rate(zelda_judge_segments_total[5m]))", "By outcome.", "cps", "{{status}}"
    ),
    DashboardPanel(
        "Calls in flight and their limit",
        (
            Query("sum by (route) (zelda_judge_in_flight_calls)", "{{route}}"),
            Query("sum by (route) (zelda_judge_concurrency_limit_calls)", "{{route}} limit"),
        ),
        "The limit adapts to errors.",
    ),
    panel(
        "Circuit breaker",
        "max by (route) (zelda_judge_breaker_state)",
        "0 closed, 1 probing, 2 open.",
        legend="{{route}}",
    ),
)
MODELS = (
    panel(
        "Requests waiting in vLLM",
        f"sum by (llm_isvc_name) ({VLLM.format(name='num_requests_waiting')})",
        "vLLM's queue has no limit.",
        legend="{{llm_isvc_name}}",
        needs=LLM,
    ),
    panel(
        "KV cache in use",
        f"max by (llm_isvc_name) ({VLLM.format(name='kv_cache_usage_perc')})",
        "At 100 % vLLM preempts requests.",
        "percentunit",
        "{{llm_isvc_name}}",
        needs=LLM,
    ),
)
CONTROL = (
    panel("Leader", "zelda_lease_held_ratio", "One instance per lease shows 1.", legend="{{lease}} {{instance}}"),
    panel(
        "Takeovers", "sum by (lease) (increase(zelda_lease_taken_total[1h]))", "In the last hour.", legend="{{lease}}"
    ),
    panel("Versions", "zelda_build_info", "Version of each service.", legend="{{service}} {{version}}", kind="table"),
)

DASHBOARD = Dashboard(
    "flow",
    "Zelda RLAIF: is it flowing?",
    "Does every segment get a score in time, and what needed repair?",
    (
        ("Play", PLAY),
        ("Event bus", BUS),
        ("Failures", TROUBLE),
        ("Judges", JUDGES),
        ("Models", MODELS),
        ("Control", CONTROL),
    ),
)
