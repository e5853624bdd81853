"""``--with ID`` and ``--without ID``: threats switched on and off in a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trifecta.design.document import Document, did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.factors import KNOWN_FACTORS
from trifecta.design.overrides import apply_overrides, by_hand, refuse_changed
from trifecta.threats.table import THREATS
from trifecta.threats.threat import Change, Threat


@dataclass
class Switches:
    """Threats to switch on and off in a study; called with its document after options of ``--set`` are applied.

    In a campaign (``many``) a switch may find nothing to change in some of its studies; `refuse_unused` complains of
    those that found nothing in any.
    """

    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    many: bool = False
    _refused: dict[str, UserError] = field(default_factory=dict)
    _applied: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for option, ids in (("--with", self.on), ("--without", self.off)):
            for one in ids:
                _change(option, one)
        both = sorted(set(self.on) & set(self.off))
        if both:
            raise UserError(f"options --with and --without: {both[0]!r} is in both; remove it from one")

    def __call__(self, document: Document) -> None:
        """Change the document of a study; UserError with one line where a switch cannot apply."""
        for option, ids in (("--with", self.on), ("--without", self.off)):
            for one in ids:
                sentence = f"{option} {one}"
                try:
                    _apply(document, _change(option, one), sentence)
                    self._applied.add(sentence)
                except UserError as error:
                    refusal = UserError(f"option {sentence}: {str(error).removeprefix(f'option {sentence}: ')}")
                    if not self.many:
                        raise refusal from None
                    self._refused.setdefault(sentence, refusal)

    def refuse_unused(self) -> None:
        """UserError for the first switch that no study of a campaign had a use for."""
        for option_text, refusal in self._refused.items():
            if option_text not in self._applied:
                raise refusal


def find(threat: str) -> Threat:
    """The threat of this name; UserError with what it could have been."""
    if threat not in THREATS:
        raise UserError(f"no threat {threat!r}; {did_you_mean(threat, THREATS)}")
    return THREATS[threat]


def compared_factor(threat: str) -> tuple[str, str] | None:
    """The factor that a threat is, and its levels off and on, for ``--compare``; None for a name that is no threat.

    UserError for a threat that is no factor of any study: its paths are those of its experiment, or it has no switch.
    """
    threat_data = THREATS.get(threat)
    if threat_data is None:
        return None
    # What is done on paper has levels of its own, whatever factor bears that name.
    effects = () if threat_data.procedure else threat_data.effects
    one = next((effect for effect in effects if effect.factor in KNOWN_FACTORS and effect.factor != "path"), None)
    if one is None:
        raise UserError(
            f"option --compare {threat}: it is no factor with levels off and on; see `trifecta threats {threat}` for "
            "how it is measured"
        )
    return one.factor, f"{one.off},{one.on}"


def switches(on: Sequence[str] = (), off: Sequence[str] = (), *, many: bool = False) -> Switches | None:
    """The switches for these threats; None when there are none. ``many``: for a campaign."""
    return Switches(tuple(on), tuple(off), many) if on or off else None


def _change(option: str, threat: str) -> Change:
    try:
        threat_data = find(threat)
    except UserError as error:
        raise UserError(f"option {option}: {error}") from None
    change = threat_data.on if option == "--with" else threat_data.off
    if change is None:
        reason = threat_data.no_switch or f"it has no switch for {option}"
        raise UserError(f"option {option} {threat}: {reason}")
    return change


def _apply(document: Document, change: Change, option_text: str) -> None:
    if callable(change):
        before = by_hand(document)
        change(document)
        refuse_changed(document, before, option_text)
    else:
        apply_overrides(document, change, option_text)
