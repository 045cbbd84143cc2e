"""What does it cost? Calls, tokens and money of the judges, savings by caches, and machines."""

from deploy.generate.dashboards.flow import LLM, VLLM
from deploy.generate.dashboards.model import Dashboard, DashboardPanel, Query, panel

JUDGED = 'sum(increase(zelda_judge_segments_total{status="judged"}[1h]))'
TOKENS = "zelda_judge_tokens_total"

SPENT = (
    panel(
        "Money per hour",
        "sum by (judge) (increase(zelda_judge_money_total[1h]))",
        "By the configured prices.",
        legend="{{judge}}",
    ),
    panel("Money so far", "sum(zelda_judge_money_total)", "Since the judges started.", kind="stat"),
    panel("Calls per hour", "sum by (route) (increase(zelda_judge_calls_total[1h]))", "By route.", legend="{{route}}"),
    DashboardPanel(
        "Budget",
        (
            Query("max(zelda_judge_budget_exhausted_state)", "exhausted"),
            Query("sum(increase(zelda_judge_budget_refusals_total[1h])) or vector(0)", "refused calls"),
        ),
        "The service makes no call beyond it.",
    ),
)
WORK = (
    panel("Tokens per second", f"sum by (kind) (rate({TOKENS}[5m]))", "Prompt, cached, output.", legend="{{kind}}"),
    panel(
        "Tokens per judged segment", f'sum(increase({TOKENS}{{kind!="cached"}}[1h])) / {JUDGED}', "Prompt and output."
    ),
    panel(
        "Votes per judged segment",
        f"sum(increase(zelda_judge_votes_total[1h])) / {JUDGED}",
        "At least 3 judges x 3 votes.",
    ),
    panel(
        "Invalid votes",
        'sum by (judge) (rate(zelda_judge_votes_total{valid="no"}[5m]))',
        "Paid, but not usable.",
        "cps",
        "{{judge}}",
    ),
)
SAVED = (
    panel(
        "Prompt tokens from the cache",
        f'sum by (judge) (rate({TOKENS}{{kind="cached"}}[5m])) / sum by (judge) (rate({TOKENS}{{kind="prompt"}}[5m]))',
        "As reported by the server.",
        "percentunit",
        "{{judge}}",
    ),
    panel(
        "Identical segments from the cache",
        "sum by (judge) (zelda_judge_cache_hits_total) or vector(0)",
        "Judgings without a call.",
        legend="{{judge}}",
    ),
    panel(
        "Prefix cache of vLLM",
        f"sum by (llm_isvc_name) (rate({VLLM.format(name='prefix_cache_hits_total')}[5m]))"
        f" / sum by (llm_isvc_name) (rate({VLLM.format(name='prefix_cache_queries_total')}[5m]))",
        "Share of tokens found in the cache.",
        "percentunit",
        "{{llm_isvc_name}}",
        needs=LLM,
    ),
)
# Every process of a cluster has these series; `zelda_build_info` selects those of this project.
OURS = " and on (namespace, instance) zelda_build_info"
# Prometheus does not scrape drivers: do not compare these figures with figures of play.
MACHINES = (
    panel(
        "Processor",
        f"sum by (job) (rate(process_cpu_seconds_total[5m]){OURS})",
        "Cores in use, without drivers.",
        legend="{{job}}",
    ),
    panel(
        "Memory",
        f"sum by (job) (process_resident_memory_bytes{OURS})",
        "Resident, without drivers.",
        "bytes",
        "{{job}}",
    ),
)

DASHBOARD = Dashboard(
    "cost",
    "Zelda RLAIF: what does it cost?",
    "What do judging and playing cost, and what do caches save?",
    (("Spent", SPENT), ("Work", WORK), ("Saved", SAVED), ("Machines", MACHINES)),
)
