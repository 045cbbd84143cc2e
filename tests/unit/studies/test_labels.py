"""Labels of a language model and of degraded rules: read, refused, recorded once, and trained on in each trial."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.__main__ import exit_code_of
from cli.errors import USAGE
from services.judge.config import rules_only
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.rewardnet import load
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import ObjectEntry, Store
from studies.arms import BankLabels
from studies.judges.answers import AnswersFile, plain
from studies.judges.bank import Bank
from studies.judges.sample import judged_sample, noisy, pairs_accuracy
from studies.labels.bank_model import BankRewardModel
from studies.labels.bank_store import MODEL, RULES, read_scores, record_bank, segment_id
from studies.labels.labelers import Labeler, ShuffledLabeler
from studies.labels.noise import ANSWERS, noise_for
from studies.labels.votes import MIN_LABELLED, ModelVotes, read_votes
from studies.plan import InvalidStudy, LabelSettings
from studies.results import Results
from tests.unit.studies.invented import plan
from tests.unit.studies.small_bank import answer, imagined_bank, small_bank

BANK = imagined_bank([place % 3 for place in range(80)])
NOW = datetime.now(UTC)


def kept(folder: Path, names: list[str]) -> AnswersFile:
    """A file with answers about these segments."""
    found = AnswersFile.open(folder, rules_only(), BANK)
    for place, name in enumerate(names):
        found.add(answer(name, [place % 6] * 3))
    return found


def test_a_model_labels_the_worlds_of_a_study(tmp_path: Path) -> None:
    kept(tmp_path, [one.name for one in BANK.segments[:70]])
    votes = read_votes(tmp_path, BANK, ("garden",))
    assert [one.name for one in votes.segments["garden"]] == [one.name for one in BANK.segments[:70]]
    assert read_votes(plain(tmp_path), BANK, ("garden",)) == votes  # the file is as good as its folder
    fewer = ModelVotes(votes.segments, {**votes.answers, "b0003": answer("b0003", [0])})
    assert fewer.digest != votes.digest


def test_votes_of_another_bank_are_refused(tmp_path: Path) -> None:
    kept(tmp_path, ["b0001", "b9999"])
    with pytest.raises(InvalidStudy, match="answers about b9999, which the bank has not"):
        read_votes(tmp_path, BANK, ("garden",))


def test_votes_by_another_rubric_are_refused(tmp_path: Path) -> None:
    kept(tmp_path, [one.name for one in BANK.segments])
    text = plain(tmp_path).read_text()
    head, rest = text.split("\n", 1)
    plain(tmp_path).write_text(head.replace('"rubric": "', '"rubric": "0') + "\n" + rest)
    with pytest.raises(InvalidStudy, match="another rubric than this version's"):
        read_votes(tmp_path, BANK, ("garden",))
    plain(tmp_path).write_text(text.replace('"efficiency"', '"beauty"'))
    with pytest.raises(InvalidStudy, match="another rubric than this version's"):
        read_votes(tmp_path, BANK, ("garden",))
    # Files of earlier versions do not name their rubric.
    before = f'{{"judges": "abc", "models": ["one"], "bank": "{BANK.digest}"}}\n' + rest
    plain(tmp_path).write_text(before)
    assert len(read_votes(tmp_path, BANK, ("garden",)).answers) == 80


def test_too_few_votes_are_refused_and_say_how_to_go_on(tmp_path: Path) -> None:
    kept(tmp_path, [one.name for one in BANK.segments[: MIN_LABELLED - 1]])
    with pytest.raises(InvalidStudy, match=r"judges 59 of 80 segments of garden in the half dev.*zelda judge bench"):
        read_votes(tmp_path, BANK, ("garden",))
    with pytest.raises(InvalidStudy, match="the bank has no segment of wild:101"):
        read_votes(tmp_path, BANK, ("wild:101",))
    with pytest.raises(InvalidStudy, match=r"--labels: .* holds no answers"):
        read_votes(tmp_path / "none", BANK, ("garden",))


def test_the_rules_judge_is_no_language_model() -> None:
    with pytest.raises(InvalidStudy, match="holds the rules judge's votes"):
        read_votes(ANSWERS[0], Bank.load(), ("garden",))


def test_noise_lowers_the_rules_judge_to_the_accuracy_of_a_model() -> None:
    bank = Bank.load()
    answers = AnswersFile.load(ANSWERS[0], bank).of("plain")
    sample = judged_sample(bank, bank.half("dev"), answers)
    assert pairs_accuracy(noisy(sample, noise_for(0.8, bank))) == pytest.approx(0.8, abs=0.005)
    with pytest.raises(InvalidStudy, match=r"--noisy-accuracy 0.95: .* orders 0.90 of the pairs"):
        noise_for(0.95, bank)


def recorded(values: list[int]) -> tuple[Store, Bank, ModelVotes]:
    """A store with the segments of the small bank, about which a model voted this."""
    bank = small_bank()
    store, segments = MemoryStore(), list(bank.segments)
    answers = {one.name: answer(one.name, [value] * 3) for one, value in zip(segments, values, strict=True)}
    votes = ModelVotes({"garden": segments}, answers)
    asyncio.run(record_bank(store, bank, votes, lambda *_: None))
    return store, bank, votes


def test_a_segment_is_recorded_once_with_the_scores_of_both_judges() -> None:
    store, bank, votes = recorded([1, 5])

    async def again() -> tuple[list[ObjectEntry], list[ObjectEntry], list[int]]:
        said: list[int] = []
        before = await store.list(f"{keys.EPISODES}/")
        await record_bank(store, bank, votes, lambda done, total: said.append(done))
        return before, await store.list(f"{keys.EPISODES}/"), said

    before, after, said = asyncio.run(again())
    assert before == after
    assert len(before) >= 6
    assert said == [1, 2]
    model = asyncio.run(read_scores(store, bank, "garden", MODEL))
    rules = asyncio.run(read_scores(store, bank, "garden", RULES))
    assert [one.weighted for one in model] == [0.2, 1.0]
    assert [one.segment for one in model] == [one.segment for one in rules] == [segment_id(s) for s in bank.segments]
    assert [one.segment_digest for one in model] == [one.segment_digest for one in rules]
    assert {one.judges[0].model for one in rules} == {"rules"}
    assert asyncio.run(read_scores(store, bank, "vale", MODEL)) == []


def run_record(seed: int) -> RunRecord:
    config = RunConfig(world="garden", seed=seed)
    return RunRecord(run=RunId(f"llm-{seed}"), revision=0, state="running", config=config, created=NOW, updated=NOW)


def epoch(record: RunRecord, number: int) -> EpochFinishedRecord:
    return EpochFinishedRecord(
        run=record.run,
        epoch=number,
        fence=0,
        steps=300,
        episodes=1,
        seconds=1.0,
        segments=[],
        checkpoint_key="checkpoint",
        checkpoint_digest=Digest("0" * 64),
        created=NOW,
    )


def test_a_trial_trains_on_the_bank_once_and_keeps_the_model() -> None:
    store, bank, _ = recorded([1, 5])
    record, own = run_record(3), MemoryStore()

    async def models() -> bytes:
        source = BankRewardModel(own, store, bank, "llm-shuffled", "gain")
        first = await source.next_model(record, epoch(record, 0))
        assert first is not None
        assert await source.next_model(record, epoch(record, 1)) == first
        again = BankRewardModel(own, store, bank, "llm-shuffled", "gain")  # after a restart
        assert await again.next_model(record, epoch(record, 2)) == first
        return await own.get(first.weights_key, first.weights_digest)

    assert load(asyncio.run(models()), "counters/v1").members == 5


def test_the_gates_refuse_a_model_of_two_segments() -> None:
    store, bank, _ = recorded([1, 5])

    async def model() -> object:
        record = run_record(3)
        return await BankRewardModel(MemoryStore(), store, bank, "llm", "gain").next_model(record, epoch(record, 0))

    assert asyncio.run(model()) is None


def test_the_newest_usable_model_shapes_the_next_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def card(name: str, usable: bool) -> SimpleNamespace:
        document = SimpleNamespace(usable=usable, reference=lambda key, digest: name)
        return SimpleNamespace(card=SimpleNamespace(document=document, key="key", digest="digest"))

    class NoLabels(Labeler):
        async def label_all(self, record: RunRecord, finished: EpochFinishedRecord) -> None:
            pass

    async def nothing(*_: object) -> None:
        pass

    async def chosen(gated: bool, *epochs: SimpleNamespace) -> object:
        store, record = MemoryStore(), run_record(3)
        await store.put(keys.epoch_finished(record.run, 0), b"{}")
        labeler = NoLabels(store, "gain")
        labeler.gated = gated
        monkeypatch.setattr(labeler, "_handlers", SimpleNamespace(epoch_finished=nothing))
        reader = SimpleNamespace(read=lambda record: asyncio.sleep(0, SimpleNamespace(epochs=epochs)))
        monkeypatch.setattr("studies.labels.labelers.RunViewReader", lambda store: reader)
        return await labeler.next_model(record, epoch(record, 0))

    monkeypatch.setattr("studies.labels.labelers.is_usable", lambda document: document.usable)
    cards = (card("old", True), card("good", True), card("refused", False), SimpleNamespace(card=None))
    assert asyncio.run(chosen(True, *cards)) == "good"
    assert asyncio.run(chosen(False, *cards)) == "refused", "models of permuted scores need not pass the gates"
    assert asyncio.run(chosen(True, cards[2])) is None
    assert (Labeler.gated, ShuffledLabeler.gated) == (True, False)


def test_abstentions_are_no_votes(tmp_path: Path) -> None:
    found = kept(tmp_path, [one.name for one in BANK.segments[: MIN_LABELLED + 1]])
    found.add(answer("b0000", [3]).model_copy(update={"weighted": None}))
    votes = read_votes(tmp_path, BANK, ("garden",))
    assert len(votes.answers) == MIN_LABELLED
    assert "b0000" not in votes.answers


def test_permuted_votes_stay_in_their_world_and_follow_the_seed() -> None:
    store, bank, _ = recorded([1, 5])

    async def values(labels: BankLabels, seed: int) -> list[float | None]:
        source = BankRewardModel(MemoryStore(), store, bank, labels, "gain")
        return [scores.weighted for _, scores in await source._scores("garden", seed)]

    assert asyncio.run(values("llm", 0)) == [0.2, 1.0]
    orders = [asyncio.run(values("llm-shuffled", seed)) for seed in range(8)]
    assert {tuple(order) for order in orders} == {(0.2, 1.0), (1.0, 0.2)}


def test_arms_with_labels_join_a_study_that_had_none(tmp_path: Path) -> None:
    digest = Digest(sha256(b"votes"))
    labels = LabelSettings(votes=digest, source="runs/bench/one")
    plan(arms=("none",)).save_or_extend(tmp_path)
    plan(arms=("llm",), labels=labels).save_or_extend(tmp_path)
    plan(arms=("rules-noisy",), labels=LabelSettings(noisy_accuracy=0.8, noise=0.2)).save_or_extend(tmp_path)
    joined = plan().load(tmp_path).labels
    assert (joined.votes, joined.noisy_accuracy, joined.source) == (digest, 0.8, "runs/bench/one")
    elsewhere = LabelSettings(votes=digest, source="/elsewhere/one")  # another machine, the same votes
    plan(arms=("llm",), labels=elsewhere).save_or_extend(tmp_path)
    with pytest.raises(InvalidStudy, match="contains another study"):
        plan(arms=("llm",), labels=LabelSettings(votes=Digest(sha256(b"others")))).save_or_extend(tmp_path)


def test_a_results_file_keeps_the_labels_and_refuses_others(tmp_path: Path) -> None:
    file = tmp_path / "garden.json"
    Results.open(file, plan(), "c", "abc", 2).save(file)
    assert "noisy_accuracy" not in file.read_text()
    labelled = plan(labels=LabelSettings(noisy_accuracy=0.8, noise=0.2))
    Results.open(file, labelled, "c", "abc", 2).save(file)
    assert Results.open(file, plan(), "c", "abc", 2).labels == labelled.labels
    with pytest.raises(InvalidStudy, match="holds trials with other labels"):
        Results.open(file, plan(labels=LabelSettings(noisy_accuracy=0.7, noise=0.3)), "c", "abc", 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--arms", "llm"], "The arm llm needs labels: name a language model's answers about the bank"),
        (["--arms", "none", "--labels", "x"], "--labels: no arm of this study reads it"),
        (["--arms", "rules-bank", "--labels", "x"], "--labels: x holds no answers"),
        (["--arms", "rules-noisy", "--noisy-accuracy", "0.99"], "--noisy-accuracy 0.99: noise brings the rules judge"),
    ],
)
def test_unusable_labels_are_refused_before_anything_is_written(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["study", "garden", *options, "--out", str(tmp_path)]) == USAGE
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
