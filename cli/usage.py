"""Names the values in usage lines and help pages as people know them: `RUN`, `PATH`, `N`, not `{RUN}` or `<path>`."""

from pathlib import Path
from typing import Any, Final, get_args, get_origin

from typer.core import TyperArgument, TyperOption

NAMES: Final = {bool: "", int: "N", float: "X", Path: "PATH", str: "TEXT"}


def name_values(command: Any) -> None:
    """Rename the values of a command and of its subcommands, in place."""
    usage_pieces, help_option = command.collect_usage_pieces, command.get_help_option

    def plain_usage(ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in usage_pieces(ctx) if piece]

    def plain_help(ctx: Any) -> Any:
        option = help_option(ctx)
        option.metavar = ""
        return option

    command.collect_usage_pieces, command.get_help_option = plain_usage, plain_help
    for parameter in command.params:
        if isinstance(parameter, TyperOption) and parameter.metavar is None:
            parameter.metavar = _name(parameter.type_descriptor.annotation)
        elif isinstance(parameter, TyperArgument):
            vars(parameter)["display_type_rich"] = lambda ctx: None  # its name already says what it is
    for part in getattr(command, "commands", {}).values():
        name_values(part)


def _name(annotation: Any) -> str | None:
    """The name of one value of this type. None keeps typer's own, e.g. the choices of an enumeration."""
    return NAMES.get(get_args(annotation)[0] if get_origin(annotation) is list else annotation)
