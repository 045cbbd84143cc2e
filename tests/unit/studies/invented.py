"""Invented plans and curves for the tests of studies."""

from shared.contracts.run import RunConfig
from studies.curves import Curve
from studies.plan import StudyPlan, Trial

RUN = RunConfig(world="garden", epochs=3, epoch_steps=4096, episode_length=400)


def plan(**changes: object) -> StudyPlan:
    values = {"worlds": ("garden",), "episode_lengths": (400,), "arms": ("none", "judges"), "seeds": (0, 1), "run": RUN}
    return StudyPlan.model_validate({**values, **changes})


def curve(*share: float, finished: tuple[float, ...] = ()) -> Curve:
    steps = tuple(4096 * (1 + epoch) for epoch in range(len(share)))
    return Curve(steps=steps, share=share, finished=finished or (0.0,) * len(share), shaped=len(share) - 1)


def trials(arm: str, *curves: Curve, world: str = "garden") -> dict[Trial, Curve]:
    return {Trial(arm, world, 100 + seed): one for seed, one in enumerate(curves)}


def compared_arms(seeds: int = 10) -> dict[Trial, Curve]:
    """Judges learn, events learn as well, nothing else does."""
    rising = [curve(0.0, 0.25 + seed / 50, 1.0, finished=(0.0, 0.3, 1.0)) for seed in range(seeds)]
    flat = [curve(0.0, 0.0, seed / 100) for seed in range(seeds)]
    return {**trials("judges", *rising), **trials("events", *rising[::-1]), **trials("rnd", *flat)}
