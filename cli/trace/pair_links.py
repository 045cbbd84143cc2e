"""The part of a chain that leads over pairs which a judge compared directly: of a reward model, and of a segment."""

from collections.abc import Sequence

from cli.trace.link import Link, State
from cli.trace.segment_links import replies_link
from services.rewardmodel.domain.ratings import Rating
from shared.contracts.card import RewardModelCard
from shared.contracts.ids import RunId, SegmentId
from shared.contracts.judging.pairs import OrderAnswer, PairComparison
from shared.state.pairs import ComparedPair, PairReader
from shared.store import keys
from shared.store.port import Store


async def compared_links(
    store: Store, run: RunId, card: RewardModelCard, ratings: Sequence[Rating], *, certain: bool
) -> list[Link]:
    """The comparisons that taught a model; nothing if it learnt from ratings alone. Their digests must give the card's.

    `ratings` are those behind the card; without `certain`, others may have been selected.
    """
    if card.labels == "ratings":
        return []
    # Imports SciPy, which takes a third of the command's time.
    from services.rewardmodel.adapters.pair_labels import PairLabelReader

    rows = {rating.segment: row for row, rating in enumerate(ratings)}
    found = await PairLabelReader(store).up_to(run, card.epoch, rows)
    figures = card.compared
    facts = [
        f"{figures.train} compared pairs trained a member; {figures.ties} ties, {figures.unused} of segments that were "
        f"not used, {figures.abstained} without an answer",
        *[await _selection(store, run, epoch) for epoch in range(card.epoch + 1)],
    ]
    same = found.digest == figures.digest
    state: State = "stored" if same else "unknown" if not certain else "changed" if found.labels else "removed"
    if not same:
        facts.append(f"the store's comparisons do not give the card's digest {(figures.digest or 'of none')[:16]}")
    return [Link("its compared pairs", state, keys.all_pairs_prefix(run), figures.digest, facts)]


async def _selection(store: Store, run: RunId, epoch: int) -> str:
    selection = await PairReader(store).selection(run, epoch)
    if selection is None:
        return f"epoch {epoch}: no pairs were selected, or their selection was deleted"
    how = (
        f"selected by the disagreement of the model of epoch {selection.model.epoch}"
        if selection.model is not None
        else selection.note or "a random draw"
    )
    return f"epoch {epoch}: {len(selection.pairs)} pairs, {how}"


async def segment_pair_links(store: Store, run: RunId, epoch: int, name: SegmentId) -> list[Link]:
    """The comparisons of a segment with others of its epoch, each with its prompts and replies."""
    links: list[Link] = []
    for found in await PairReader(store).epoch(run, epoch):
        pair = found.comparison.pair
        if name in (pair.first.segment, pair.second.segment):
            links.append(_pair(run, epoch, found))
            for order in (found.comparison.forward, found.comparison.backward):
                if order is not None:
                    what = f"prompt and replies of {found.comparison.judge}"
                    links.append(await replies_link(store, run, what, order.prompt, kept=order.kept))
    return links


def _pair(run: RunId, epoch: int, found: ComparedPair) -> Link:
    comparison, pair = found.comparison, found.comparison.pair
    first, second = pair.first.segment, pair.second.segment
    facts = [
        f"{comparison.model} over {comparison.route}, rubric {comparison.rubric}: {_verdict(comparison)}",
        *_shown(comparison.forward, first),
        *_shown(comparison.backward, second),
        *(f"abstained: {reason}" for reason in comparison.reasons),
    ]
    if pair.disagreement is not None:
        facts.append(f"selected because the members disagreed by {pair.disagreement:.2f}")
    return Link(f"pair {first} and {second}", "stored", keys.pair(run, epoch, first, second), found.digest, facts)


def _verdict(comparison: PairComparison) -> str:
    if comparison.label is None:
        return "no label"
    if comparison.label == 0.5:
        return "a tie (0.50)"
    better = comparison.pair.first if comparison.label > 0.5 else comparison.pair.second
    return f"{better.segment} is better ({max(comparison.label, 1 - comparison.label):.2f})"


def _shown(answer: OrderAnswer | None, first: SegmentId) -> list[str]:
    """One order of the clips in words."""
    if answer is None:
        return []
    shares = f"it is better {answer.first:.2f}, equal {answer.equal:.2f}, worse {answer.second:.2f}"
    reason = f'; reason: "{answer.reason}"' if answer.reason else ""
    return [f"{first} shown first: {shares}{reason}"]
