"""Settings of every process: environment variables, validated before anything heavy is imported."""
