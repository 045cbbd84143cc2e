"""The part of a chain from a reward to the scores: order, reward model, pairs, scores."""

from cli.trace.link import Link, fetch
from cli.trace.pair_links import compared_links
from cli.trace.run_documents import RunDocuments
from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.domain.ratings import Rating, data_digest
from services.rewardmodel.domain.segment_selection import select_ratings
from services.rewardmodel.settings import RewardModelGroup
from shared.contracts.card import RewardModelCard
from shared.contracts.ids import RunId
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
    card = RewardModelCard.from_bytes(found.data)
    weights = await fetch(store, card.weights_key, card.weights_digest)
    accuracy = "unknown" if card.accuracy.confident is None else f"{card.accuracy.confident:.2f}"
    failed = ", ".join(name for name, passed in card.gates.items() if not passed)
    verdict = "all gates passed" if card.gates_passed else f"failed gates: {failed}"
    ratings = await ratings_behind(store, run, card)
    return [
        Link(f"reward model of epoch {epoch}", found.state, key, found.digest, [f"accuracy {accuracy}; {verdict}"]),
        Link("its weights", weights.state, card.weights_key, weights.digest),
        Link("its pairs", "not kept", facts=[_pairs(card), "pairs follow from the scores below and the card's seed"]),
        *await compared_links(store, run, card, ratings),
        _scores_link(run, card, ratings),
    ]


def _pairs(card: RewardModelCard) -> str:
    """How many pairs there were; with compared ones, these are among them."""
    return f"{card.pairs_train:,} pairs for training and {card.pairs_heldout:,} held out, of {card.segments} segments"


def _scores_link(run: RunId, card: RewardModelCard, ratings: list[Rating]) -> Link:
    """The scores behind a card, selected again as the service does; their digests must give the card's."""
    same = data_digest(ratings) == card.data_digest
    facts = [f"{len(ratings)} score objects of epochs {_span(ratings)}, e.g. {ratings[0].segment}"] if ratings else []
    if not same:
        facts.append(
            f"{card.segments} were used; the store's scores do not give the card's digest {card.data_digest[:16]}"
        )
    prefix = keys.all_scores_prefix(run)
    return Link(
        "its scores", "stored" if same else "changed" if ratings else "removed", prefix, card.data_digest, facts
    )


async def ratings_behind(store: Store, run: RunId, card: RewardModelCard) -> list[Rating]:
    """The ratings that the card's model was trained on, under the default capacity."""
    group = RewardModelGroup()
    known = await ScoreCache(store).ratings(run, card.epoch)
    return select_ratings(known, card.epoch, group.capacity, group.new_share)


def _span(ratings: list[Rating]) -> str:
    epochs = sorted({rating.epoch for rating in ratings})
    return str(epochs[0]) if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]}"
