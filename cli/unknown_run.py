"""The sentences about a run that does not exist, or lacks what a command reads: the same in every command."""

from collections.abc import Sequence

from cli.errors import NOT_FOUND, CliError, end_sentence
from shared.config.problems import suggestion
from shared.contracts.ids import RunId
from shared.store import keys
from shared.store.port import Store


def unknown_run(run: str, known: Sequence[str]) -> CliError:
    """The error of a command that names no run; `known` are the names that exist."""
    advice = f"There is no run {run}: list the runs with `zelda run list`"
    return CliError(NOT_FOUND, end_sentence(advice + suggestion(run, known)))


async def require_run(store: Store, run: RunId) -> None:
    """CliError if the store holds neither a record nor an epoch of the run."""
    if await store.list(keys.run_record_prefix(run)) or await store.exists(keys.epoch_start(run, 0)):
        return
    listed = await store.list(keys.run_index_prefix())
    raise unknown_run(run, [entry.key.rpartition("/")[2] for entry in listed])


async def require_summary(store: Store, run: RunId) -> None:
    """CliError if no coordinator writes the run's summary, because `zelda epoch` trains the run."""
    from shared.state.runs import RunRecords

    if await store.exists(keys.run_summary(run)):
        return
    if (await RunRecords(store).latest(run)).external:
        raise CliError(
            NOT_FOUND,
            f"{run} has no summary, because `zelda epoch` trained it and a coordinator writes summaries: "
            "its policy, its segments and their scores can be read.",
        )
