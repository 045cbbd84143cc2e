"""How many choices one request may ask for: learnt from a server's refusal, or from a server that ignores `n`.

llama.cpp refuses more choices than it has slots; other servers return one choice for every `n`. A pure state machine.
"""

import re
from dataclasses import dataclass

# The field's name stands alone in every server's message: "Field 'n': ...", "n must be at most 1", "`n` > 1 is ...".
_NAMES_N = re.compile(r"(?<![\w.])['\"`]?n['\"`]?(?![\w.])")
_UPPER_BOUND = re.compile(r"(?:<=|at most|up to|maximum(?: is| of)?|no more than)\s*(\d{1,4})")


@dataclass
class ChoiceLimit:
    """The most choices of one request, None while unknown. It is confirmed when a request within it succeeds."""

    most: int | None = None
    confirmed: bool = False

    def cap(self, wanted: int) -> int:
        """Return how many of these choices one request may ask for."""
        return wanted if self.most is None else min(wanted, self.most)

    def learn_from_refusal(self, asked: int, message: str) -> bool:
        """Return whether the message refuses the number of choices, so that a request for fewer may succeed."""
        if asked <= 1 or not _NAMES_N.search(message):
            if not self.confirmed:
                self.most = None  # fewer choices did not help: the request had another fault
            return False
        named = [int(bound) for bound in _UPPER_BOUND.findall(message) if 1 <= int(bound) < asked]
        self.most, self.confirmed = min(named, default=1), False
        return True

    def learn_from_answer(self, asked: int, received: int) -> bool:
        """Note an answer; return whether it made a limit known. One choice for any number: the server ignores `n`."""
        if asked > 1 and received == 1:
            self.most = 1
        if self.confirmed or self.most is None or received > self.most:
            return False
        self.confirmed = True
        return True
