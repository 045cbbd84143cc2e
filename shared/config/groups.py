"""Each service's own groups of variables (`ZELDA_<GROUP>__<FIELD>`)."""

from typing import Final

GROUPS: Final = {
    "coordinator": ("COORDINATOR",),
    "trainer": ("TRAINER", "DRIVER"),
    "judge": ("JUDGE",),
    "rewardmodel": ("REWARDMODEL",),
    "exporter": ("EXPORT", "ROM"),
}
