"""The part of a chain from a reward to the scores: order, reward model, pairs, scores."""

from collections.abc import Sequence

from cli.trace.link import Link, State, fetch
from cli.trace.pair_links import compared_links
from cli.trace.run_documents import RunDocuments
from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.domain.ratings import Rating, data_digest
from services.rewardmodel.domain.segment_selection import select_ratings
from services.rewardmodel.settings import RewardModelGroup
from shared.contracts.card import RewardModelCard
from shared.contracts.ids import RunId
from shared.state.documents import parse_document
from shared.store import keys
from shared.store.port import Store


def order_link(documents: RunDocuments, epoch: int, not_shaped: str | None = None) -> Link:
    """The order of an epoch: which reward model shaped its rewards, and by how much; or why none did."""
    model, shaping = documents.orders[epoch].reward_model, documents.orders[epoch].config.shaping
    facts = (
        [f"the model of epoch {model.epoch} shapes it: mode {shaping.mode}, coefficient {shaping.coefficient:g}"]
        if model is not None
        else [not_shaped or "no reward model shapes it"]
    )
    if epoch < len(documents.finished) and (added := documents.finished[epoch].metrics.get("reward/shaping")):
        total = documents.finished[epoch].metrics.get("return_mean", 0.0)
        facts.append(f"shaping added {added:.3g} to the mean return of an episode, {total:.3g}")
    key, digest = keys.epoch_start(documents.run, epoch), documents.order_digests[epoch]
    return Link(f"order of epoch {epoch}", "stored", key, digest, facts)


async def model_links(store: Store, run: RunId, epoch: int) -> list[Link]:
    """Card, weights, pairs and scores of the model that was trained after `epoch`; one line if no model was trained."""
    key = keys.reward_model_card(run, epoch)
    found = await fetch(store, key)
    if found.data is None:
        why = "its card is missing: never trained, or deleted"
        return [Link(f"reward model of epoch {epoch}", "removed", key, facts=[why])]
    card = parse_document(RewardModelCard, key, found.data)
    weights = await fetch(store, card.weights_key, card.weights_digest)
    accuracy = "unknown" if card.accuracy.confident is None else f"{card.accuracy.confident:.2f}"
    failed = ", ".join(name for name, passed in card.gates.items() if not passed)
    verdict = "all gates passed" if card.gates_passed else f"failed gates: {failed}"
    known = await ScoreCache(store).ratings(run, card.epoch)
    ratings = ratings_behind(card, known)
    # An older card does not say how many scores its training selected, which matters only if there are more.
    certain = card.capacity is not None or len(known) <= card.segments
    return [
        Link(f"reward model of epoch {epoch}", found.state, key, found.digest, [f"accuracy {accuracy}; {verdict}"]),
        Link("its weights", weights.state, card.weights_key, weights.digest),
        Link("its pairs", "not kept", facts=[_pairs(card), "pairs follow from the scores below and the card's seed"]),
        *await compared_links(store, run, card, ratings, certain=certain),
        _scores_link(run, card, ratings, certain=certain),
    ]


def _pairs(card: RewardModelCard) -> str:
    """How many pairs there were; with compared ones, these are among them."""
    return f"{card.pairs_train:,} pairs for training and {card.pairs_heldout:,} held out, of {card.segments} segments"


def _scores_link(run: RunId, card: RewardModelCard, ratings: list[Rating], *, certain: bool) -> Link:
    """The scores behind a card, selected again as the service does; their digests must give the card's.

    Without `certain`, others may have been selected.
    """
    facts = [f"{len(ratings)} score objects of {_span(ratings)}, e.g. {ratings[0].segment}"] if ratings else []
    if data_digest(ratings) == card.data_digest:
        state: State = "stored"
    elif certain:
        state = "changed" if ratings else "removed"
        facts.append(
            f"{card.segments} were used; the store's scores do not give the card's digest {card.data_digest[:16]}"
        )
    else:
        state = "unknown"
        facts.append(f"{card.segments} were used, selected with other settings, which this older card does not name")
    return Link("its scores", state, keys.all_scores_prefix(run), card.data_digest, facts)


def ratings_behind(card: RewardModelCard, known: Sequence[Rating]) -> list[Rating]:
    """Those of the `known` ratings that the card's model was trained on; of an older card under default settings."""
    group = RewardModelGroup()
    capacity = group.capacity if card.capacity is None else card.capacity
    new_share = group.new_share if card.new_share is None else card.new_share
    return select_ratings(known, card.epoch, capacity, new_share)


def _span(ratings: list[Rating]) -> str:
    epochs = sorted({rating.epoch for rating in ratings})
    return f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]} to {epochs[-1]}"
