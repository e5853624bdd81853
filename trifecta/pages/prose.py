"""English sentences from a seed: text that wraps, shapes and compresses like text."""

from __future__ import annotations

import random


def _words(text: str, between: str = " ") -> list[str]:
    return text.split(between)


_ADJECTIVES = _words(
    "quiet narrow northern steep bright early winding stony green distant ancient open clear cold familiar slow wide "
    "weathered gentle broad hidden low high long short dark pale warm dry wooden"
)
_NOUNS = _words(
    "valley harbour path ridge village bridge river orchard station meadow lighthouse market workshop garden island "
    "railway forest glacier hut pass lake quarry chapel terrace canal mill square field tower shore"
)
_VERBS = _words(
    "crosses follows overlooks nears skirts meets borders passes joins reaches shelters surrounds divides hides frames"
)
_WHEN = _words(
    "in spring|after the first snow|before noon|on market days|for most of the year|since the last century|"
    "when the ferry arrives|at low tide|until late autumn|as the maps have it|by the old road|on a clear evening",
    "|",
)
_FRAMES = (
    "The {a} {n} {v} the {n2} {w}.",
    "{W}, the {n} {v} a {a} {n2}.",
    "A {a} {n} {v} the {a2} {n2}, and the {n3} {v2} both {w}.",
    "From the {n} one sees the {a} {n2}; the {n3} {v} it {w}.",
    "Few who know the {n} expect that the {a} {n2} {v} the {n3} {w}.",
    "The {n} is {a} and the {n2} {a2}, yet the {n3} {v} them {w}.",
)


class Prose:
    """An endless text; the same seed gives the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _pick(self, words: list[str] | tuple[str, ...]) -> str:
        # Not choice(): how that draws has changed between Python versions, random() never has.
        return words[int(self._random.random() * len(words))]

    def number(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both possible."""
        return low + int(self._random.random() * (high - low + 1))

    def sentence(self) -> str:
        """One, with its full stop."""
        when = self._pick(_WHEN)
        text = self._pick(_FRAMES).format(
            a=self._pick(_ADJECTIVES), a2=self._pick(_ADJECTIVES), n=self._pick(_NOUNS), n2=self._pick(_NOUNS),
            n3=self._pick(_NOUNS), v=self._pick(_VERBS), v2=self._pick(_VERBS), w=when, W=when.capitalize(),
        )  # fmt: skip
        for vowel in "aeio":
            text = text.replace(f" a {vowel}", f" an {vowel}").replace(f"A {vowel}", f"An {vowel}")
        return text

    def paragraph(self, sentences: int) -> str:
        """Some sentences."""
        return " ".join(self.sentence() for _ in range(sentences))

    def title(self) -> str:
        """Two words."""
        return f"{self._pick(_ADJECTIVES).capitalize()} {self._pick(_NOUNS)}"
