"""Saved states: a document for each name, created once, and the state itself under its digest."""

from collections.abc import Iterable, Sequence

from shared.contracts.epoch import SavedState
from shared.contracts.ids import StateName
from shared.contracts.run import RunConfig
from shared.errors import Permanent
from shared.store import keys
from shared.store.port import AlreadyExists, NotFound, Store


class StateNameTaken(Permanent):
    """The name means another state already."""


class UnknownState(Permanent):
    """No state has this name."""


class UnplayableState(Permanent):
    """A state does not fit what plays it."""


class SavedStates:
    """Reads and creates saved states."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def create(self, document: SavedState, content: bytes) -> None:
        """Store a state under its name; raise StateNameTaken if the name is in use. `content` is compressed."""
        await self._store.put(document.key, content)  # first: the document commits to it
        try:
            await self._store.create(keys.saved_state(document.name), document.to_bytes())
        except AlreadyExists as error:
            raise StateNameTaken(
                f"the saved state {document.name} exists, and runs may begin there: choose another name"
            ) from error

    async def read(self, name: StateName) -> SavedState:
        """The document of a name; UnknownState, with the names that exist, if it does not exist."""
        try:
            return SavedState.from_bytes(await self._store.get(keys.saved_state(name)))
        except NotFound as error:
            known = ", ".join(state.name for state in await self.all())
            advice = f"choose from {known}" if known else "save one with `zelda states save`"
            raise UnknownState(f"no saved state is named {name}: {advice}") from error

    async def named(self, names: Iterable[StateName]) -> list[SavedState]:
        """The documents of several names, in their order."""
        return [await self.read(name) for name in names]

    async def all(self) -> list[SavedState]:
        """All documents, by name."""
        listed = await self._store.list(keys.saved_states_prefix())
        return [SavedState.from_bytes(await self._store.get(entry.key)) for entry in listed]

    async def content(self, document: SavedState) -> bytes:
        """The compressed state, checked against its digest."""
        return await self._store.get(document.key, document.digest)


def require_playable(states: Sequence[SavedState], config: RunConfig) -> None:
    """Raise UnplayableState if a run of another game or world shall begin at one of the states."""
    for state in states:
        if played_in(state) != played_in(config):
            raise UnplayableState(
                f"the saved state {state.name} is of {played_in(state)}, and the run plays {played_in(config)}"
            )


def played_in(what: SavedState | RunConfig) -> str:
    """The ROM that was or will be played, as a person names it."""
    return f"{what.game}, world {what.world}, {what.difficulty}" if what.game == "bramble" else what.game
