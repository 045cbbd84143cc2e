"""`zelda rewardmodel`: train the reward model of an epoch once, without the service."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import format_number, print_json, print_line, print_status
from cli.errors import FAILED, NOT_FOUND, CliError
from cli.run_arguments import parse_run_id
from cli.service_settings import load_settings, reachable_store
from cli.unknown_run import require_run
from shared.contracts.ids import RunId
from shared.store import keys

if TYPE_CHECKING:
    from services.rewardmodel.adapters.model_store import StoredCard
    from services.rewardmodel.settings import RewardModelSettings
    from shared.store.port import Store

app = typer.Typer(help="Train a reward model.", no_args_is_help=True)


@app.callback()
def rewardmodel() -> None:
    """Train a reward model."""


@app.command()
def train(
    run: Annotated[str, typer.Argument(help="name of the run", metavar="RUN")],
    epoch: Annotated[int, typer.Option("--epoch", min=0, help="newest epoch whose scores are used")],
    as_json: Annotated[bool, typer.Option("--json", help="print the model's card as JSON")] = False,
) -> None:
    """Train the reward model of an epoch from its scores, unless it has one, and print its card."""
    from services.rewardmodel.settings import RewardModelSettings

    with reachable_store():
        own = load_settings(RewardModelSettings)
        card = asyncio.run(_train(own, parse_run_id(run), epoch)).card
    if as_json:
        print_json(card.model_dump(mode="json"))
        return
    print_line(f"segments: {card.segments}")
    if card.labels != "ratings":
        print_line(f"compared pairs: {card.compared.train} ({card.compared.ties} ties)")
    print_line(f"held-out accuracy on confident pairs: {format_number(card.accuracy.confident)}")
    failed = [gate for gate, passed in card.gates.items() if not passed]
    print_line(f"gates: {'passed' if card.gates_passed else 'failed: ' + ', '.join(failed)}")
    print_line(f"weights: {card.weights_key}")


async def _train(own: "RewardModelSettings", run: RunId, epoch: int) -> "StoredCard":
    from services.rewardmodel.errors import TrainingFailed
    from services.rewardmodel.offline import train_epoch
    from shared.store.open import open_store
    from shared.store.port import NotFound

    store = open_store(own.store)
    try:
        await require_run(store, run)
        await _require_scores(store, run, epoch)
        print_status(f"Training the reward model of {run}, epoch {epoch}.")
        return await train_epoch(own.rewardmodel, store, run, epoch)
    except NotFound as error:
        raise CliError(
            NOT_FOUND, f"{run} has no finished epoch {epoch}: check the run with `zelda run show {run}`."
        ) from error
    except TrainingFailed as error:
        raise CliError(FAILED, f"{error}.") from error


async def _require_scores(store: "Store", run: RunId, epoch: int) -> None:
    """CliError if a training would have no scores: its empty card would be the model of this epoch for good."""
    from shared.state.scores import ScoreReader

    trained = await store.exists(keys.reward_model_card(run, epoch))
    if trained or not await store.exists(keys.epoch_finished(run, epoch)):
        return  # nothing will be trained
    scores = ScoreReader(store)
    for number in range(epoch, -1, -1):
        if await scores.list_epoch(run, number):
            return
    from services.judge.offline.compare import rubrics

    known = ", ".join(await rubrics(store, run)) or "none"
    raise CliError(
        NOT_FOUND,
        f"{run} has no scores under rubric {keys.RUBRIC!r} up to epoch {epoch} (rubrics with scores: {known}): "
        f"judge it with `zelda judge segments {run} --rubric {keys.RUBRIC}` (without a model: --rules), and try again.",
    )
