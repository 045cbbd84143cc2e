"""What PPO learns in this project and in stock RLlib, and what one batch of it costs."""
