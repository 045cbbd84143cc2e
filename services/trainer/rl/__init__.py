"""PPO on Ray RLlib: algorithm, module, learner, curiosity, env runners. Only the driver and its runners load it."""
