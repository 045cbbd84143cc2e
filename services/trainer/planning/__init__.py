"""Plans for an environment: who acts, what is planned, and how a plan becomes actions. No environment waits for it."""
