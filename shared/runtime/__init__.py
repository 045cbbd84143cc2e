"""What every service process needs: settings, logs, metrics, health, drain."""
