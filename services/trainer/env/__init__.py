"""The game as a reinforcement learning environment: steps, rewards, recording. It knows no bus and no learner."""
