"""The solver gate: a reward model trained on judged play must value every milestone of the same world.

It needs no reinforcement learning: `python -m studies.gate WORLD...` takes seconds to a minute per world.
"""
