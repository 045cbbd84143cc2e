"""Plans and suggestions by rules, in the form that a planner's schema asks for: a double of a planning model.

It reads the facts as JSON from the prompt. With `obey_texts` it does what a model must not do: it takes text that the
game shows for orders, and replies with them. Tests use it to show that the orders end at the grammar.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from services.judge.rules_server.bad_request import BadRequest

Tile = tuple[int, int]
HERO, FREE, BUTTON, SWITCH, BLOCK = "@.oxB"
_SIDES = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
_ORDER = re.compile(r"[A-Z][A-Z_]{2,}(?: [^;|]{1,50})?")


def plans(properties: Mapping[str, Any]) -> bool:
    """Whether a schema asks for a plan or a suggestion."""
    return "macros" in properties or "action" in properties


def plan_reply(properties: Mapping[str, Any], text: str, obey: bool) -> str:
    """Return the reply to a prompt whose text is the facts. Raises BadRequest if it is not."""
    facts = _facts(text)
    if "macros" not in properties:
        return json.dumps({"action": _action(facts, obey), "scene": f"room {facts['room']}", "confidence": 0.8})
    orders = _orders(facts) if obey else []
    macros = orders or _puzzle(facts["grid"]) or ["INTERACT yes"]
    goal = str(facts["dialog"]["text"])[:100] if orders else "do what is open here"
    return json.dumps({"sub_goal": goal, "macros": macros[:12], "fallback": [], "confidence": 0.9})


def _facts(text: str) -> dict[str, Any]:
    try:
        facts = json.loads(text)
    except ValueError as error:
        raise BadRequest("a plan needs the facts as JSON in the last message") from error
    if not isinstance(facts, dict) or not {"room", "grid", "exits", "dialog"} <= facts.keys():
        raise BadRequest("a plan needs facts with room, grid, exits and dialog")
    return facts


def _orders(facts: Mapping[str, Any]) -> list[str]:
    """What the game's text seems to order: everything that looks like a command, else the whole text."""
    if not facts["dialog"]:
        return []
    text = str(facts["dialog"]["text"])
    return _ORDER.findall(text) or [text]


def _action(facts: Mapping[str, Any], obey: bool) -> str:
    """Read a dialog; else walk towards an exit."""
    if obey and facts["dialog"]:
        return _orders(facts)[0]
    if facts["dialog"]:
        return "a"
    return str(facts["exits"][0]) if facts["exits"] else "wait"


def _puzzle(grid: list[str]) -> list[str]:
    """Step on every button, nearest to the hero first, and push blocks in line with a switch; empty without any."""
    column, row = next(iter(_tiles(grid, HERO)), (0, 0))
    buttons = sorted(_tiles(grid, BUTTON), key=lambda tile: abs(tile[0] - column) + abs(tile[1] - row))
    macros = [f"MOVE_TO {x},{y}" for x, y in buttons]
    for switch in _tiles(grid, SWITCH):
        macros += _pushes(grid, switch)
    return macros


def _pushes(grid: list[str], switch: Tile) -> list[str]:
    """Pushes of the nearest block that slides straight onto a switch; empty without one."""
    found: list[list[str]] = []
    for block in _tiles(grid, BLOCK):
        for name, (dx, dy) in _SIDES.items():
            far = max(abs(switch[0] - block[0]), abs(switch[1] - block[1]))
            if far and (block[0] + dx * far, block[1] + dy * far) == switch:
                way = [(block[0] + dx * step, block[1] + dy * step) for step in range(far)]
                if all(grid[y][x] in (FREE, HERO) for x, y in way[1:]):
                    found.append([f"PUSH_BLOCK {x},{y} {name}" for x, y in way])
    return min(found, key=len, default=[])


def _tiles(grid: list[str], kind: str) -> list[Tile]:
    return [(x, y) for y, line in enumerate(grid) for x, sign in enumerate(line) if sign == kind]
