"""`zelda run note`: the note and the tags of a run."""

from typing import Annotated, Any

import typer

from cli.client import find_connection, open_client
from cli.console import print_json, print_line
from cli.run_arguments import parse_run_id
from cli.runs.options import Json, Name, TokenFile, Url

Text = Annotated[str | None, typer.Option("--text", help="the new note; an empty text removes it")]
Added = Annotated[list[str] | None, typer.Option("--tag", help="add a tag")]
Removed = Annotated[list[str] | None, typer.Option("--untag", help="remove a tag")]


def note(
    name: Name,
    text: Text = None,
    tag: Added = None,
    untag: Removed = None,
    as_json: Json = False,
    url: Url = None,
    token_file: TokenFile = None,
) -> None:
    """Show or change the note and the tags of a run. `zelda run list --tag TAG` finds it again."""
    path = f"/runs/{parse_run_id(name)}/notes"
    with open_client(find_connection(url, token_file)) as client:
        notes = client.get(path)
        if text is not None or tag or untag:
            tags = (set(notes["tags"]) | set(tag or [])) - set(untag or [])
            notes = client.put(path, {"note": notes["note"] if text is None else text, "tags": sorted(tags)})
    if as_json:
        print_json(notes)
        return
    for line in note_lines(notes) or [f"{name} has no note and no tags: add them with --text and --tag."]:
        print_line(line)


def note_lines(notes: dict[str, Any]) -> list[str]:
    """One line for the tags and one for the note, without those that are empty."""
    lines = {"tags": ", ".join(notes["tags"]), "note": notes["note"]}
    return [f"{name}: {text}" for name, text in lines.items() if text]
