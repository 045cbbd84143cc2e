"""Every object key of the system, built here and nowhere else.

Two buckets: EPISODES holds recordings and scores, MODELS everything learnt and decided. The bucket is the first part of
the key. Epoch numbers are not padded (`epoch_7`), as in the original system.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId, StateName
from shared.errors import Permanent

EPISODES = "episodes"
MODELS = "models"
BUCKETS = (EPISODES, MODELS)
PROBE = f"{MODELS}/probe"  # overwritten by each check that the store accepts writes; nothing reads it

RUBRIC = "default"
"""The rubric version whose scores a running system reads. `zelda judge` writes others."""


def segments_prefix(run: RunId, epoch: int | None = None) -> str:
    """All segment archives of a run, or of one epoch."""
    return f"{EPISODES}/episodes/{run}/" if epoch is None else f"{EPISODES}/episodes/{run}/epoch_{epoch}/"


def segment(run: RunId, epoch: int, episode: EpisodeId, segment: SegmentId) -> str:
    """One segment archive: the commit object of `segment.ready`."""
    return f"{segments_prefix(run, epoch)}{episode}/{segment}.zip"


class SegmentPlace(NamedTuple):
    """The ids in the key of a segment archive."""

    run: RunId
    epoch: int
    episode: EpisodeId
    segment: SegmentId


_SEGMENT = re.compile(rf"{EPISODES}/episodes/([^/]+)/epoch_(0|[1-9][0-9]{{0,8}})/([^/]+)/([^/]+)\.zip")


def segment_place(key: str) -> SegmentPlace | None:
    """The ids from which `segment` built this key; None for any other key."""
    found = _SEGMENT.fullmatch(key)
    if found is None:
        return None
    run, epoch, episode, name = found.groups()
    try:
        return SegmentPlace(RunId(run), int(epoch), EpisodeId(episode), SegmentId(name))
    except ValueError:
        return None


_DIGEST_NOTE = re.compile(r"(.+\.zip)\.sha256-([0-9a-f]{64})")


def digest_note(archive: str, digest: str) -> str:
    """The object beside a segment archive whose key names the archive's SHA-256: one listing shows both."""
    return f"{archive}.sha256-{digest}"


def is_digest_note(key: str) -> bool:
    """Whether `digest_note` built this key."""
    return _DIGEST_NOTE.fullmatch(key) is not None


def noted_digests(listed: Iterable[str]) -> dict[str, Digest]:
    """Archive key -> SHA-256, from the digest notes among the keys of a listing."""
    notes = (found.groups() for key in listed if (found := _DIGEST_NOTE.fullmatch(key)))
    return {archive: Digest(digest) for archive, digest in notes}


def all_scores_prefix(run: RunId) -> str:
    """All score objects of a run, under every rubric version."""
    return f"{EPISODES}/scores/{run}/"


def scores_prefix(run: RunId, epoch: int, rubric: str = RUBRIC) -> str:
    """All score objects of one epoch under one rubric version."""
    return f"{EPISODES}/scores/{run}/epoch_{epoch}/{rubric}/"


def score(run: RunId, epoch: int, segment: SegmentId, rubric: str = RUBRIC) -> str:
    """The one outcome of a segment: the commit object of `scores.ready`."""
    return f"{scores_prefix(run, epoch, rubric)}{segment}.json"


def is_score(key: str, run: RunId, epoch: int) -> bool:
    """Whether `score` built this key, under the default rubric."""
    name = key.removeprefix(scores_prefix(run, epoch)).removesuffix(".json")
    try:
        return key == score(run, epoch, SegmentId(name))
    except ValueError:  # not a segment id
        return False


def partial_scores(run: RunId, epoch: int, segment: SegmentId, rubric: str = RUBRIC) -> str:
    """Results of some judges while another one's route is away; deleted once the score object exists."""
    return f"{EPISODES}/partial/{run}/epoch_{epoch}/{rubric}/{segment}.json"


def all_pairs_prefix(run: RunId) -> str:
    """All pairs of segments that judges compared for a run, under every rubric version."""
    return f"{EPISODES}/pairs/{run}/"


def pairs_prefix(run: RunId, epoch: int, rubric: str = RUBRIC) -> str:
    """The selected pairs of one epoch, and the comparison of each."""
    return f"{all_pairs_prefix(run)}epoch_{epoch}/{rubric}/"


def pair_selection(run: RunId, epoch: int, rubric: str = RUBRIC) -> str:
    """Which pairs of an epoch are compared."""
    return f"{pairs_prefix(run, epoch, rubric)}selection.json"


def pair(run: RunId, epoch: int, first: SegmentId, second: SegmentId, rubric: str = RUBRIC) -> str:
    """The one comparison of two segments, whichever is named first."""
    names = "|".join(sorted((first, second)))
    return f"{pairs_prefix(run, epoch, rubric)}pair-{hashlib.sha256(names.encode()).hexdigest()[:32]}.json"


def replies_prefix(run: RunId) -> str:
    """What judges were asked and replied, where the judge keeps it."""
    return f"{EPISODES}/replies/{run}/"


def replies(run: RunId, prompt: Digest) -> str:
    """The replies to the prompt with this SHA-256."""
    return f"{replies_prefix(run)}{prompt}.json.gz"


def planner_answers_prefix(run: RunId) -> str:
    """What models answered to the planners of a run."""
    return f"{EPISODES}/answers/{run}/"


def planner_answers(run: RunId, epoch: int, pack: str) -> str:
    """One pack of an epoch's answers, as JSON lines."""
    return f"{planner_answers_prefix(run)}epoch_{epoch}/{pack}.jsonl.gz"


def scores_jsonl(run: RunId, epoch: int) -> str:
    """All scores of an epoch as JSON lines, for people and other tools."""
    return f"{EPISODES}/scores/{run}/epoch_{epoch}/scores.jsonl"


def export_prefix(run: RunId, epoch: int, episode: EpisodeId, segment: SegmentId) -> str:
    """Exported files of one segment: manifest.json, states.jsonl, frames/, video.mp4, potential.json."""
    return f"{EPISODES}/exports/{run}/epoch_{epoch}/{episode}/{segment}/"


def run_prefix(run: RunId) -> str:
    """All objects of one run in MODELS."""
    return f"{MODELS}/runs/{run}/"


def run_index_prefix() -> str:
    """One tiny object per run, so that listing runs does not list all their objects."""
    return f"{MODELS}/index/runs/"


def run_index(run: RunId) -> str:
    """The entry of one run in the index."""
    return f"{run_index_prefix()}{run}"


def saved_states_prefix() -> str:
    """The documents of all states that users saved."""
    return f"{MODELS}/states/documents/"


def saved_state(name: StateName) -> str:
    """The document of a saved state: the commit object of its name."""
    return f"{saved_states_prefix()}{name}.json"


def saved_state_content(digest: str) -> str:
    """The compressed state with this SHA-256. Two names may mean the same state."""
    return f"{MODELS}/states/content/{digest}"


def run_notes_prefix() -> str:
    """The notes of all runs."""
    return f"{MODELS}/index/notes/"


def run_notes(run: RunId) -> str:
    """What people wrote about a run; outside its folder, so that one listing shows the tags of all runs."""
    return f"{run_notes_prefix()}{run}"


def deleted_run(run: RunId) -> str:
    """The mark of a deleted run: its name stays taken, and its late events are ignored."""
    return f"{MODELS}/index/deleted/{run}"


def prefixes_of_run(run: RunId) -> dict[str, str]:
    """What the objects of a run are -> their prefix, in the order in which a deletion removes them."""
    return {
        "record": run_record_prefix(run),
        "segments": segments_prefix(run),
        "scores": all_scores_prefix(run),
        "compared pairs": all_pairs_prefix(run),
        "partial scores": f"{EPISODES}/partial/{run}/",
        "judges' replies": replies_prefix(run),
        "planners' answers": planner_answers_prefix(run),
        "exported files": f"{EPISODES}/exports/{run}/",
        "epochs, checkpoints, models and reports": run_prefix(run),
    }


def run_request(digest: str) -> str:
    """The run that was created by the request whose Idempotency-Key has this SHA-256."""
    return f"{MODELS}/index/requests/{digest}"


def run_record_prefix(run: RunId) -> str:
    """All revisions of the run's record."""
    return f"{run_prefix(run)}record/"


def run_revision(run: RunId, revision: int) -> str:
    """One revision of the run's record."""
    return f"{run_record_prefix(run)}{revision:08d}.json"


def epochs_prefix(run: RunId) -> str:
    """The start and finish documents of all epochs."""
    return f"{run_prefix(run)}epochs/"


def epoch_start(run: RunId, epoch: int) -> str:
    """The order to start an epoch: the commit object of `rm.ready`."""
    return f"{epochs_prefix(run)}epoch_{epoch}/start.json"


def epoch_finished(run: RunId, epoch: int) -> str:
    """The record of a finished epoch: the commit object of `epoch.finished`."""
    return f"{epochs_prefix(run)}epoch_{epoch}/finished.json"


def archive_pack(run: RunId, epoch: int, digest: str) -> str:
    """What an epoch added to the run's archive of states; the content has this SHA-256."""
    return f"{run_prefix(run)}archive/epoch_{epoch}_{digest[:16]}.zip"


def exploration(run: RunId, *, ended: bool) -> str:
    """What the exploration before the first epoch found, created once; before its end, its database."""
    return f"{run_prefix(run)}archive/{'explored.json' if ended else 'exploration.sqlite'}"


def trajectory(run: RunId, entry: int, digest: str) -> str:
    """A trajectory of the run's archive of states; the content has this SHA-256."""
    return f"{run_prefix(run)}archive/trajectory_{entry}_{digest[:16]}.zip"


def leg_passes(run: RunId, epoch: int, digest: str) -> str:
    """What the episodes of an epoch saw and did on the legs that they passed; the content has this SHA-256."""
    return f"{run_prefix(run)}archive/epoch_{epoch}_passes_{digest[:16]}"


def archive_coverage(run: RunId, epoch: int) -> str:
    """The rooms of the archive of states after an epoch."""
    return f"{run_prefix(run)}archive/epoch_{epoch}_coverage.json"


def checkpoint_prefix(run: RunId, epoch: int) -> str:
    """Checkpoint objects of one epoch."""
    return f"{run_prefix(run)}checkpoints/epoch_{epoch}/"


def reward_model_prefix(run: RunId, epoch: int) -> str:
    """rm.safetensors, rm.pt and card.json of one epoch."""
    return f"{run_prefix(run)}reward_model/epoch_{epoch}/"


def reward_model_weights(run: RunId, epoch: int, digest: str) -> str:
    """Weights with this SHA-256: cards and start orders cite this key."""
    return f"{reward_model_prefix(run, epoch)}rm-{digest[:16]}.safetensors"


def reward_model_card(run: RunId, epoch: int) -> str:
    """The card: the commit object of `rm.trained`."""
    return f"{reward_model_prefix(run, epoch)}card.json"


def evaluations_prefix(run: RunId) -> str:
    """Evaluations of all epochs of one run."""
    return f"{run_prefix(run)}evaluations/"


def evaluation_summary(run: RunId, epoch: int) -> str:
    """The summary row of one epoch."""
    return f"{evaluations_prefix(run)}epoch_{epoch}/summary.json"


def judge_reports_prefix(run: RunId, epoch: int, rubric: str = RUBRIC) -> str:
    """Each judge process's report on one epoch, one object per process."""
    return f"{evaluations_prefix(run)}epoch_{epoch}/judges/{rubric}/"


def judge_report(run: RunId, epoch: int, rubric: str = RUBRIC) -> str:
    """Quality and cost of one epoch's judging: votes, agreement, drift, position bias, correlation, money."""
    name = "judges" if rubric == RUBRIC else f"judges-{rubric}"
    return f"{evaluations_prefix(run)}epoch_{epoch}/{name}.json"


def canary_set(run: RunId, rubric: str = RUBRIC) -> str:
    """The segments that are judged again in every epoch, to measure the judges' drift."""
    return f"{evaluations_prefix(run)}canary-{rubric}.json"


def canary_claim(run: RunId, epoch: int, rubric: str = RUBRIC) -> str:
    """The judge process that judges the canary set in this epoch."""
    return f"{evaluations_prefix(run)}epoch_{epoch}/canary-{rubric}.json"


def judge_gates(run: RunId, epoch: int, rubric: str = RUBRIC) -> str:
    """The judges whose scores do not count in this epoch."""
    return f"{evaluations_prefix(run)}epoch_{epoch}/judge-gates-{rubric}.json"


def progress(run: RunId) -> str:
    """The live progress file of a run."""
    return f"{run_prefix(run)}pipeline/progress.json"


def run_summary(run: RunId) -> str:
    """The growing summary of a run, one row per epoch."""
    return f"{run_prefix(run)}summary.json"


def driver_heartbeat(run: RunId) -> str:
    """Last heartbeat of the training driver: time, epoch, steps done, steps per second."""
    return f"{run_prefix(run)}driver/heartbeat.json"


def live_frame(run: RunId) -> str:
    """What one environment shows now, while someone watches."""
    return f"{run_prefix(run)}live/frame.json"


def live_mark(run: RunId) -> str:
    """Renewed while someone watches; its content is only compared with the one before."""
    return f"{run_prefix(run)}live/watched"


def driver_stopped(run: RunId, attempt: int) -> str:
    """The driver's confirmation of this attempt's stop request, with its checkpoint."""
    return f"{run_prefix(run)}driver/stopped-{attempt}.json"


def driver_failed(run: RunId, attempt: int) -> str:
    """The trainer's report that this attempt's driver failed finally, with the reason."""
    return f"{run_prefix(run)}driver/failed-{attempt}.json"


def lease_prefix(name: str) -> str:
    """All kept revisions of a lease."""
    return f"{MODELS}/lease/{name}/"


def lease_revision(name: str, revision: int) -> str:
    """One revision of a lease: acquiring, renewing and releasing each create the next one."""
    return f"{lease_prefix(name)}{revision:012d}.json"


_LEASE_REVISION = re.compile(rf"{MODELS}/lease/[^/]+/([0-9]{{12}})\.json")


def lease_number(key: str) -> int | None:
    """The revision in a key of `lease_revision`; None for any other key."""
    found = _LEASE_REVISION.fullmatch(key)
    return int(found[1]) if found else None


_PART = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._=+@-]{0,199}(?<!\.)")


def split(key: str, *, prefix: bool = False) -> tuple[str, str]:
    """Bucket and path within it; Permanent if `key` could leave the bucket, is ambiguous, or is too long.

    With `prefix`, a trailing slash is expected and the path may be empty.
    """
    bucket, slash, path = key.partition("/")
    if prefix and not key.endswith("/"):
        raise Permanent(f"store prefix {key!r:.80}: it must end in a slash")
    parts = path.removesuffix("/").split("/") if prefix else path.split("/")
    if prefix and path == "":
        parts = []
    if bucket not in BUCKETS or not slash or len(key) > 512:
        raise Permanent(f"store key {key!r:.80}: the first part must be {EPISODES!r} or {MODELS!r}")
    if not all(_PART.fullmatch(part) for part in parts):
        raise Permanent(f"store key {key!r:.80}: use letters, digits and . _ = + @ - between single slashes")
    return bucket, path
