"""`zelda trace` leads from a reward model over the pairs that taught it to both answers, their prompts and replies."""

from cli.trace.chain import trace_segment
from cli.trace.link import Link
from cli.trace.model_links import ratings_behind
from services.judge.config import rules_only
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup
from services.rewardmodel.adapters.pair_labels import PairLabelReader
from services.rewardmodel.adapters.score_cache import ScoreCache
from shared.contracts.base import sha256
from shared.contracts.card import ComparedPairs, RewardModelCard
from shared.contracts.envelope import wrap
from shared.contracts.epoch import EpochStart
from shared.contracts.events import EpochFinished
from shared.contracts.ids import Digest
from shared.contracts.learning.reward_learning import LabelsConfig
from shared.state.pairs import PairReader
from shared.store import keys
from shared.store.port import Store
from tests.unit.cli.test_trace import NAME, RUN, states
from tests.unit.cli.test_trace import store as store  # the fixture

PAIRS = 8


async def compare(store: Store) -> None:
    """Let the rules judge compare pairs of epoch 0, and its model learn from them."""
    start, card_key = keys.epoch_start(RUN, 0), keys.reward_model_card(RUN, 0)
    order = EpochStart.from_bytes(await store.get(start))
    labels = LabelsConfig(source="both", pairs=PAIRS)
    config = order.config.model_copy(update={"labels": labels})
    await store.put(start, order.model_copy(update={"config": config}).to_bytes())
    card = RewardModelCard.from_bytes(await store.get(card_key))
    await store.delete(card_key)  # pairs are compared before the model is trained
    runtime = JudgeRuntime(store, rules_only().with_rubric(keys.RUBRIC), JudgeGroup(keep_replies=True))
    key = keys.epoch_finished(RUN, 0)
    digest = Digest(sha256(await store.get(key)))
    await runtime.pairs.epoch_finished(
        wrap(EpochFinished(run=RUN, epoch=0, key=key, digest=digest, segments=6), source="trainer")
    )
    await runtime.close()
    ratings = ratings_behind(card, await ScoreCache(store).ratings(RUN, 0))
    rows = {rating.segment: row for row, rating in enumerate(ratings)}
    found = await PairLabelReader(store).up_to(RUN, 0, rows)
    compared = ComparedPairs(train=len(found.labels), ties=found.ties, digest=found.digest)
    await store.put(card_key, card.model_copy(update={"labels": "both", "compared": compared}).to_bytes())


def found(links: list[Link], what: str) -> Link:
    return next(link for link in links if link.what.startswith(what))


async def test_a_model_is_followed_to_the_pairs_that_taught_it(store: Store) -> None:
    await compare(store)
    links = await trace_segment(store, RUN, NAME)
    compared = found(links, "its compared pairs")
    assert compared.state == "stored"
    assert f"{PAIRS} compared pairs trained a member" in compared.facts[0]
    assert compared.facts[1] == f"epoch 0: {PAIRS} pairs, a random draw: no reward model shaped this epoch"


async def test_a_segment_is_followed_to_its_pairs_with_both_answers(store: Store) -> None:
    await compare(store)
    links = await trace_segment(store, RUN, NAME)
    pair = found(links, "pair ")
    assert str(NAME) in pair.what
    assert pair.state == "stored"
    assert pair.facts[0].startswith("rules over in-process, rubric default: ")
    assert sum("shown first: it is better" in fact for fact in pair.facts) == 2
    after = links[links.index(pair) + 1]
    assert after.state == "stored"
    assert after.text is not None
    assert after.text.startswith("CLIP A")


async def test_removed_pairs_and_replies_are_named(store: Store) -> None:
    await compare(store)
    pairs = await PairReader(store).epoch(RUN, 0)
    names = [{one.comparison.pair.first.segment, one.comparison.pair.second.segment} for one in pairs]
    kept = next(one.comparison for one, pair in zip(pairs, names, strict=True) if NAME in pair)
    gone = next(one.comparison for one in pairs if one.comparison != kept)
    assert kept.forward is not None
    await store.delete(keys.replies(RUN, kept.forward.prompt))
    await store.delete(PairReader(store).key(RUN, 0, gone.pair))
    links = await trace_segment(store, RUN, NAME)
    assert states(links)["its compared pairs"] == "changed"
    (removed,) = [link for link in links if link.what == "prompt and replies of rules" and link.state == "removed"]
    assert removed.facts == ["stored when the judge replied, and removed by retention since"]
