"""`zelda states`: save states of a game by name, list and show them. Episodes begin there with -s starts.NAME=0.3."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.console import print_json, print_line, print_status, print_table
from cli.errors import USAGE, CliError
from cli.output_paths import PICTURE, require_writable_file
from cli.run_arguments import parse_fields, parse_run_id, parse_segment_id, run_config
from cli.runs.options import Json
from cli.stored_runs import read_store
from shared.contracts.ids import StateName
from shared.process.whole_file import write_whole_file

if TYPE_CHECKING:
    from shared.contracts.epoch import SavedState
    from shared.contracts.run import RunConfig

app = typer.Typer(help="Save, list and show states where runs begin episodes.", no_args_is_help=True)
OF_A_STATE: Final = ("game", "world", "difficulty", "seed")
State = Annotated[str, typer.Argument(help="name of the state", metavar="NAME")]
Rom = Annotated[Path | None, typer.Option(help="your own ROM image, for oracle-of-seasons")]


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the saved states."""
    from shared.state.saved_states import SavedStates

    states = read_store(lambda store: SavedStates(store).all())
    if as_json:
        print_json([state.model_dump(mode="json") for state in states])
        return
    if not states:
        print_status("There are no saved states: `zelda states save --help` shows how to get one.")
        return
    rows = [(s.name, s.game, *_world_of(s), s.place, str(s.milestones), s.source) for s in states]
    print_table("saved states", ("name", "game", "world", "difficulty", "room", "milestones", "from"), rows)
    _print_use(states[0].name)


@app.command()
def show(
    name: State,
    picture: Annotated[Path | None, typer.Option(help="write what the screen shows as a PNG file")] = None,
    rom: Rom = None,
    as_json: Json = False,
) -> None:
    """Show one saved state; --picture draws it."""
    from cli.saved_states.saving import draw_state, read_state

    if picture is not None:
        require_writable_file(picture, PICTURE)
    state, content = read_state(_state_name(name))
    if picture is not None:
        write_whole_file(picture, draw_state(state, content, rom))
    plain = state.model_dump(mode="json") | {"picture": str(picture) if picture else None}
    if as_json:
        print_json(plain)
        return
    for field, value in plain.items():
        if value is not None:
            print_line(f"{field}: {value}")


@app.command()
def save(
    name: State,
    run: Annotated[str | None, typer.Option("--run", help="run whose segment holds the state")] = None,
    segment: Annotated[str | None, typer.Option("--segment", help="name of the segment")] = None,
    step: Annotated[int, typer.Option("--step", min=0, help="step of the segment; 0 is its start")] = 0,
    file: Annotated[Path | None, typer.Option("--file", help="a state that PyBoy saved, instead of a segment")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", help="with --file: game, world and difficulty, e.g. -s world=garden"),
    ] = None,
    rom: Rom = None,
    as_json: Json = False,
) -> None:
    """Save a state of a recorded segment (--run, --segment), or of a file, under a name. No name is used twice."""
    from cli.saved_states.capture import at_step, of_file
    from cli.saved_states.saving import recorded_segment, save_state
    from shared.state.saved_states import played_in

    wanted = _state_name(name)
    if file is not None and step:
        raise CliError(USAGE, "--step goes with --run and --segment: a file holds one state. Leave it out.")
    if file is None and set_:
        raise CliError(USAGE, "-s goes with --file: a segment's run says its game, world and difficulty. Leave it out.")
    if file is not None and run is None and segment is None:
        config = _played(set_ or [], rom)
        state = save_state(wanted, config, of_file(file), f"file {file.name}", rom)
    elif file is None and run is not None and segment is not None:
        config, recorded = recorded_segment(parse_run_id(run), parse_segment_id(segment))
        source = f"step {step} of segment {segment} of run {run}"
        state = save_state(wanted, config, at_step(recorded, step), source, rom)
    else:
        raise CliError(USAGE, "Name --run and --segment, or --file alone: the page's Segments tab shows segments.")
    if as_json:
        print_json(state.model_dump(mode="json"))
        return
    print_line(f"{state.name}: room {state.place} of {played_in(state)}, {state.milestones} milestones, {state.source}")
    _print_use(state.name)


def _world_of(state: "SavedState") -> tuple[str, str]:
    """World and difficulty; empty for a game that has neither."""
    return (state.world, state.difficulty) if state.game == "bramble" else ("", "")


def _played(pairs: list[str], rom: Path | None) -> "RunConfig":
    """What a file's state is of. CliError for a field that says nothing about a state, or for a ROM without its game.

    The emulator loads a state of any game into any other one, so without the name of the game it would count as
    Bramble's.
    """
    fields = parse_fields(pairs)
    config = run_config(fields)  # names a misspelt field
    if others := sorted(fields.keys() - OF_A_STATE):
        raise CliError(USAGE, f"-s {others[0]}: a state has {', '.join(OF_A_STATE)}. Leave it out.")
    if rom is not None and config.game == "bramble":
        raise CliError(
            USAGE, f"--rom {rom}: without its game, the state is one of Bramble: add -s game=oracle-of-seasons."
        )
    return config


def _print_use(name: StateName) -> None:
    print_status(f"Begin 30 % of the episodes there: `zelda run start -s starts.{name}=0.3`.")


def _state_name(text: str) -> StateName:
    try:
        return StateName(text)
    except ValueError as error:
        raise CliError(USAGE, f"{error}.") from error
