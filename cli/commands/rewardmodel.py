"""`zelda rewardmodel`: train the reward model of an epoch once, without the service."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import format_number, print_json, print_line, print_status
from cli.errors import FAILED, NOT_FOUND, CliError
from cli.run_arguments import parse_run_id
from cli.service_settings import load_settings
from shared.contracts.ids import RunId

if TYPE_CHECKING:
    from services.rewardmodel.adapters.model_store import StoredCard
    from services.rewardmodel.settings import RewardModelSettings

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

    own = load_settings(RewardModelSettings)
    print_status(f"Training the reward model of {run}, epoch {epoch}.")
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

    try:
        return await train_epoch(own.rewardmodel, open_store(own.store), run, epoch)
    except NotFound as error:
        raise CliError(
            NOT_FOUND, f"{run} has no finished epoch {epoch}: check the run with `zelda run show {run}`."
        ) from error
    except TrainingFailed as error:
        raise CliError(FAILED, f"{error}.") from error
