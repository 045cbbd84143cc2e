"""Variables of the original system: some set fields of a run, and a page names what replaces the others."""

from pathlib import Path

from cli.run_arguments import ORIGINAL_NAMES, parse_fields, run_config

ROOT = Path(__file__).parents[3]


def test_variables_of_the_original_system_set_fields() -> None:
    original = ["RUN_HOURS=48", "EPOCH_STEPS=300000", "EPISODE_LENGTH=30000", "BATCH_SIZE=4096"]
    fields = parse_fields([*original, "RAY_WORKERS=3", "ENVS_PER_WORKER=2", "EVAL_INTERVAL=5"])
    config = run_config(fields)
    assert config.judge_interval == 5
    assert (config.run_hours, config.epoch_steps, config.env_runners, config.envs_per_runner) == (48, 300_000, 3, 2)
    page = (ROOT / "cli/README.md").read_text()
    settings = ["S3_ENDPOINT_URL", "S3_BUCKET_NAME", "S3_ACCESS_KEY", "S3_SECRET_KEY", "LLM_ENDPOINT", "LLM_NAMESPACE"]
    others = [*settings, "LLM_USE_DIRECT", "EPOCH", "JOB_ID", "HEAD_POD"]
    assert [name for name in [*ORIGINAL_NAMES, *others] if f"`{name}`" not in page] == []
