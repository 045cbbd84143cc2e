"""The manifest inside every segment archive, and the names of its members."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.events import Epoch
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.contracts.run import ActionsName

MANIFEST = "manifest.json"
STATES = "states.jsonl"
BEFORE = "before.json"  # absent before 2026-11-29: the state before the first action, as a row of states.jsonl
OBSERVATIONS = "obs.npy"
COUNTERS = "counters.npy"
ACTIONS = "actions.npy"
ACTOR = "actor.npy"  # optional: who chose each action
PREFIX = "prefix.npy"  # the episode's actions before the segment: start.state is the episode's start
START_STATE = "start.state"
FRAMES = "frames/"
KEY_FRAMES = 8


class SegmentManifest(Contract):
    """Everything needed to replay and trace one segment: the first member of the archive."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    episode: EpisodeId
    segment: SegmentId
    index: int = Field(ge=0, description="position of the segment in its episode")
    first_step: int = Field(ge=0, description="step of the episode at which the segment begins")
    steps: int = Field(ge=1, le=5_000)
    game: str = Field(max_length=60, description="e.g. `bramble:vale` or `oracle-of-seasons`")
    rom: Digest = Field(description="SHA-256 of the ROM image")
    emulator: str = Field(max_length=60, description="name and version, because replay is exact only with the same one")
    frame_skip: int = Field(ge=1, le=60)
    seed: int
    observation: str = Field(max_length=20, description="observation layout, e.g. `obs/v1`")
    actions: ActionsName = Field("actions/v1", description="how the actions press buttons")
    counters: Annotated[str, Field(max_length=20)] | None = Field(
        None, description="layout of counters.npy, e.g. `counters/v1`; null in archives older than 2026-11-23"
    )
    members: dict[Annotated[str, Field(max_length=60)], Digest] = Field(description="SHA-256 of each other member")
    ram_start: Digest
    ram_end: Digest
    key_frames: list[int] = Field(
        max_length=64, description="steps of the pictures in frames/; 0 is before the first action"
    )
    checkpoint: Digest | None = Field(None, description="policy checkpoint that acted")
    reward_model: Digest | None = Field(None, description="weights of the reward model that shaped the reward")
    milestones_start: int = Field(
        ge=0, description="milestones reached when the segment began (truth, never shown to judges)"
    )
    milestones_end: int = Field(ge=0)
    milestones_total: int = Field(ge=0)
    reward_terms: dict[Annotated[str, Field(max_length=60)], float] = Field(
        default_factory=dict, description="sum of each term"
    )
    terminated: bool = Field(False, description="the last step ended the episode")
    sampled: Literal["share", "milestone", "novelty", "disagreement"] = "share"
    created: AwareDatetime
