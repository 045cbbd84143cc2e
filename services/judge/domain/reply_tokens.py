"""Finds the token at a place of a reply, with the alternatives that the model weighed there."""

from collections.abc import Iterator, Sequence
from math import exp

from shared.llm.json_reply import InvalidReply
from shared.llm.port import TokenOptions

MIN_SHARE = 0.5  # of the probability that must lie on valid answers; less, and the model wanted to write something else


class ReplyTokens:
    """The tokens of a reply, and the text that they form."""

    def __init__(self, tokens: Sequence[TokenOptions]) -> None:
        """Raises InvalidReply without tokens."""
        if not tokens:
            raise InvalidReply('the server returned no log-probabilities; use "asking: votes"')
        self._tokens, self._starts, text = tokens, [], ""
        for token in tokens:
            self._starts.append(len(text))
            text += token.text
        self.text: str = text

    def continuations(self, place: int) -> Iterator[tuple[str, float]]:
        """What the options of the token at `place` of the text write from there on, with their probabilities.

        A token may begin before that place, e.g. with a space or a quote; options that begin otherwise are left out.
        """
        number = max(index for index, start in enumerate(self._starts) if start <= place)
        before = self.text[self._starts[number] : place]
        for option, log_probability in self._tokens[number].options:
            if option.startswith(before):
                yield option.removeprefix(before), exp(min(0.0, log_probability))
