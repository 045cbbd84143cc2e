"""PPO on Ray RLlib: module, learner, curiosity, checkpoints and the driver. Runs only in the driver and its runners."""
