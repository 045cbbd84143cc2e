"""The part of a chain from the votes on a segment to the checkpoint that played it."""

from collections.abc import Sequence

from cli.trace.link import Link, fetch
from cli.trace.run_documents import RunDocuments
from shared.contracts.archive import read_manifest
from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import Digest, RunId
from shared.contracts.scores import JudgeReplies, JudgeResult, SegmentScores
from shared.contracts.segment import SegmentManifest
from shared.state.documents import parse_document
from shared.store import keys
from shared.store.port import Store


async def score_links(store: Store, run: RunId, epoch: int, reference: SegmentRef) -> list[Link]:
    """The score object of a segment, and each judge's votes with the digest of its prompt."""
    key = keys.score(run, epoch, reference.segment)
    found = await fetch(store, key)
    if found.data is None:
        return [Link("score", "removed", key, facts=["the segment was not judged, or its score was deleted"])]
    scores = parse_document(SegmentScores, key, found.data)
    value = "" if scores.weighted is None else f": {scores.weighted:.2f}, agreement {scores.agreement or 0:.2f}"
    facts = [f"{scores.status}{value}", *([scores.error] if scores.error else [])]
    if scores.segment_digest != reference.digest:
        facts.append("it rates another recording of this segment than the epoch lists")
    links = [Link("score", found.state, key, found.digest, facts)]
    for result in scores.judges:
        what = f"prompt and replies of {result.judge}"
        links += [
            _votes(result, scores.gated.get(result.judge, [])),
            await replies_link(store, run, what, result.prompt, kept=result.kept),
        ]
    return links


def _votes(result: JudgeResult, against: Sequence[str]) -> Link:
    """One judge's votes, and why they do not count. They are within the score object."""
    votes = [f"{name} {' '.join(map(str, one.votes))}" for name, one in result.dimensions.items()]
    facts = [
        f"{result.model} over {result.route}: {result.status}",
        *([f"votes: {', '.join(votes)}"] if votes else []),
        *([f"not counted: {', '.join(against)}"] if against else []),
        *(f'reason: "{reason}"' for reason in dict.fromkeys(result.reasons)),
    ]
    return Link(f"votes of {result.judge}", "stored", facts=facts)


async def replies_link(store: Store, run: RunId, what: str, prompt: Digest, *, kept: bool) -> Link:
    """A judge's prompt and raw replies, if the judge service keeps them. The digest is the prompt's.

    `kept` says that they were stored once.
    """
    key = keys.replies(run, prompt)
    found = await fetch(store, key)
    if found.data is None and kept:
        return Link(what, "removed", key, prompt, ["stored when the judge replied, and removed by retention since"])
    if found.data is None:
        why = "the prompt follows from segment and rubric; the judge keeps replies with ZELDA_JUDGE__KEEP_REPLIES=true"
        return Link(what, "not kept", None, prompt, [why])
    stored = JudgeReplies.unpack(found.data)
    facts = [f"reply: {text}" for text in stored.replies]
    return Link(what, "stored", key, prompt, facts, stored.question)


async def play_links(store: Store, documents: RunDocuments, reference: SegmentRef) -> list[Link]:
    """The segment archive, and the checkpoint of the policy that played it."""
    found = await fetch(store, reference.key, reference.digest)
    archive = Link("segment", found.state, reference.key, found.digest)
    if found.data is None or found.state == "changed":
        return [archive, Link("checkpoint that played it", "removed", facts=["only the archive names it"])]
    manifest = read_manifest(found.data)
    milestones = f"milestones {manifest.milestones_start} to {manifest.milestones_end} of {manifest.milestones_total}"
    archive.facts.extend(
        [
            f"{manifest.game}, steps {manifest.first_step} to {manifest.first_step + manifest.steps}, {milestones}",
            _shaped(manifest),
        ]
    )
    return [archive, await _checkpoint(store, documents, manifest)]


def _shaped(manifest: SegmentManifest) -> str:
    terms = ", ".join(f"{name} {value:.2f}" for name, value in manifest.reward_terms.items() if value)
    model = f"a reward model ({manifest.reward_model[:16]}) shaped it" if manifest.reward_model else "not shaped"
    return f"{model}; reward: {terms or 'none'}"


async def _checkpoint(store: Store, documents: RunDocuments, manifest: SegmentManifest) -> Link:
    if manifest.checkpoint is None:
        return Link("checkpoint that played it", "not kept", facts=["the policy had no checkpoint yet"])
    key = await _checkpoint_key(store, documents.run, manifest.epoch, manifest.checkpoint)
    if key is None:
        return Link("checkpoint that played it", "removed", None, manifest.checkpoint)
    found = await fetch(store, key, manifest.checkpoint)
    return Link("checkpoint that played it", found.state, key, found.digest)


async def _checkpoint_key(store: Store, run: RunId, epoch: int, digest: str) -> str | None:
    """The key of the checkpoint with this digest, which its name contains, of this epoch or the nearest before it."""
    for number in range(epoch, -1, -1):
        listed = [entry.key for entry in await store.list(keys.checkpoint_prefix(run, number))]
        if found := [key for key in listed if key.endswith(f"_{digest[:16]}.zip")]:
            return found[0]
    return None
