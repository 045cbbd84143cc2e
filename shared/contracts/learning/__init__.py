"""How a run learns: PPO, reward models, restarts and imitation."""
