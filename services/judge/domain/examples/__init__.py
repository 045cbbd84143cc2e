"""Worked examples in the prompts of small models: the clips with their votes, and the turns of a chat made of them."""
