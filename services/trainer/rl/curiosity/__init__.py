"""What is new to the agent: rare cells by visit counts, or the prediction errors of RND."""
