"""Bramble: a free Game Boy Color game with the RAM layout of Oracle of Seasons.

rom = bramble.build("vale", difficulty="normal", seed=7)
milestones = bramble.world("vale").milestones
"""

from bramble.catalog import build, world, worlds
from bramble.worlds.model import RamCondition, World, WorldError, WorldMilestone

__all__ = ["RamCondition", "World", "WorldError", "WorldMilestone", "build", "world", "worlds"]
