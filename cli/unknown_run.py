"""The sentence about a run that does not exist, the same in every command."""

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
