"""For which programs a claim holds, and what the decomposition says, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trifecta.analysis.layout import CLIENT, CROSSED, PROGRAM, PROTOCOL, SERVER
from trifecta.analysis.mean_squares import NOISE
from trifecta.analysis.pooled import EVERYWHERE
from trifecta.analysis.programs import Program
from trifecta.analysis.shares import Decomposition, Share
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.programs import program_at
from trifecta.design import naming
from trifecta.design.metric import Metric
from trifecta.design.phrases import counted, listed, sentence
from trifecta.report.figures.style import name

KINDS = ("slower", "faster", "same", "undecided")
PARTS: dict[str, str] = {
    PROTOCOL: "the protocol: what all programs have in common",
    PROGRAM: "the program: server and client, which were not crossed",
    SERVER: "the server: what differs from server to server",
    CLIENT: "the client: what differs from client to client",
    CROSSED: "server and client: pairs that do not add up",
    NOISE: "noise: what differs from block to block",
}
"""The parts of an effect, each with what it means."""


_SHORT = {
    PROGRAM: "the program",
    SERVER: "the server",
    CLIENT: "the client",
    CROSSED: "the pairing of both",
    NOISE: "noise",
}


def parts() -> dict[str, str]:
    """The parts of an effect, each with what it means."""
    return PARTS | {PROTOCOL: f"the {naming.factor()}: what all programs have in common"}


def _short(part: str) -> str:
    return f"the {naming.factor()}" if part == PROTOCOL else _SHORT.get(part, part)


@dataclass(frozen=True)
class PlaceClaims:
    """What holds for whom in one place."""

    place: str
    sentences: list[str]


def name_programs(programs: Iterable[Program], everyone: Iterable[Program], only: str = "") -> str:
    """``behind caddy``, ``with curl``, ``behind caddy, whatever the client``; ``only`` is put after the names."""
    chosen, known = list(dict.fromkeys(programs)), set(everyone)
    servers, clients = (
        list(dict.fromkeys(names)) for names in zip(*((p.server, p.client) for p in chosen), strict=True)
    )
    if len({one.client for one in known}) == 1:
        return f"behind {listed(servers)}{only}"
    if len({one.server for one in known}) == 1:
        return f"with {listed(clients)}{only}"
    if {one for one in known if one.server in servers} == set(chosen):
        return f"behind {listed(servers)}{only}, whatever the client"
    if {one for one in known if one.client in clients} == set(chosen):
        return f"with {listed(clients)}{only}, whatever the server"
    servers_with_clients = [
        f"{server} (asked by {listed([p.client for p in chosen if p.server == server])})" for server in servers
    ]
    return f"behind {listed(servers_with_clients)}{only}"


def _is_one_program(programs: Iterable[Program], everyone: Iterable[Program]) -> bool:
    """Whether these are one program, or one server or client with all the others that there are."""
    chosen, known = set(programs), set(everyone)
    if chosen == known:
        return False
    names = ({one.server for one in chosen}, {one.client for one in chosen})
    all_names = (
        {one for one in known if one.server in names[0]} == chosen,
        {one for one in known if one.client in names[1]} == chosen,
    )
    return len(chosen) == 1 or any(len(here) == 1 and all_of for here, all_of in zip(names, all_names, strict=True))


def claims_by_place(comparisons: Sequence[Comparison], pairs: Sequence[tuple[str, str]]) -> list[PlaceClaims]:
    """For every place, a sentence for each pair: for which programs which verdict holds."""
    places = list(dict.fromkeys(one.place for one in comparisons))
    claims = []
    for place in places:
        here = [one for one in comparisons if one.place == place]
        pair_claims = [_claim(pair, [one for one in here if (one.arm, one.reference) == pair]) for pair in pairs]
        claims.append(PlaceClaims(place, [one for one in pair_claims if one]))
    return claims


def is_(metric: Metric, kind: str) -> str:
    """``is faster``, ``has a higher mean bitrate``."""
    return f"{metric.wording.is_} {metric.has(kind)}"


def _claim(pair: tuple[str, str], ones: Sequence[Comparison]) -> str:
    """``HTTP/3 is slower than HTTP/2 behind caddy only; it is faster behind origin and nginx.``."""
    arm, reference = (name(one) for one in pair)
    everyone = [program_at(one.cell) for one in ones]
    groups = {kind: [program_at(one.cell) for one in ones if one.kind == kind] for kind in KINDS}
    there = [kind for kind in KINDS if groups[kind]]
    if not there:
        return ""
    verbs = {kind: f"{is_(ones[0].metric, kind)} than {reference}" for kind in ("slower", "faster")}
    verbs["same"] = f"is the same as {reference}"
    if there == ["undecided"]:
        return f"Whether {arm} or {reference} {is_(ones[0].metric, 'faster')} is not decided for any program."
    if len(there) == 1:
        if len(ones) == 1:
            return sentence(
                f"{arm} {verbs[there[0]]} {name_programs(everyone, everyone)}, the only one that was measured here"
            )
        who = f", {name_programs(everyone, everyone)}" if len(ones) <= 4 else ""
        return sentence(f"{arm} {verbs[there[0]]} with all {len(ones)} programs{who}")
    # What holds for one program only is what a reader must know first.
    decided = sorted(
        (kind for kind in there if kind != "undecided"), key=lambda kind: not _is_one_program(groups[kind], everyone)
    )
    sentences: list[str] = []
    for place, kind in enumerate(decided):
        # While others are open, nobody knows whether it is so for these only.
        only = " only" if place == 0 and not groups["undecided"] and _is_one_program(groups[kind], everyone) else ""
        sentences.append(f"{'it' if sentences else arm} {verbs[kind]} {name_programs(groups[kind], everyone, only)}")
    if groups["undecided"]:
        sentences.append(f"it is undecided {name_programs(groups['undecided'], everyone)}")
    return sentence("; ".join(sentences))


def claims(comparisons: Sequence[Comparison], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """For each pair and direction: does the claim hold for one program, for some, or for all?"""
    sentences = []
    for pair in pairs:
        ones = [one for one in comparisons if (one.arm, one.reference) == pair]
        everyone = list(dict.fromkeys(program_at(one.cell) for one in ones))
        for kind in ("slower", "faster"):
            holding = [one for one in ones if one.kind == kind]
            programs = list(dict.fromkeys(program_at(one.cell) for one in holding))
            if not programs or len(everyone) < 2:
                continue
            own = [one for one in ones if program_at(one.cell) in programs]
            others = [one for one in ones if program_at(one.cell) not in programs]
            open_cells = sum(not one.decided for one in others)
            claimed = is_(ones[0].metric, kind)
            claim = f"“{name(pair[0])} {claimed} than {name(pair[1])}” {'is shown' if open_cells else 'holds'}"
            cells = f"{len(holding)} of {counted(len(own), 'cell')}"
            if not others:
                sentences.append(f"{claim} for every program somewhere ({cells}).")
                continue
            rest = f"; elsewhere {open_cells} of {counted(len(others), 'cell')} open" if open_cells else ""
            if _is_one_program(programs, everyone):
                sentences.append(f"{claim} {name_programs(programs, everyone, ' only')} ({cells} there{rest}).")
            else:
                who = name_programs(programs, everyone)
                sentences.append(f"{claim} for {len(programs)} of {len(everyone)} programs, {who} ({cells}{rest}).")
    return sentences


def about_proxies(proxies: Sequence[str]) -> str:
    """What a reader must know before a proxy is compared with a file server; empty without one."""
    if not proxies:
        return ""
    who = f"{listed(proxies)} {'is a proxy and passes' if len(proxies) == 1 else 'are proxies and pass'}"
    times = "its times include" if len(proxies) == 1 else "their times include"
    return (
        f"Not like with like: {who} every request on to another server, so {times} a second program and a second hop."
    )


def briefly(
    comparisons: Sequence[Comparison],
    pairs: Sequence[tuple[str, str]],
    apart: Sequence[str],
    shares: Sequence[Decomposition],
) -> list[str]:
    """Two sentences for a terminal: what is one program's, and what the newest protocol's effect is made of."""
    claims_to_show = [*apart, *(claim for claim in claims(comparisons, pairs) if " only " in claim)]
    more = " More of this is in the report." if len(claims_to_show) > 1 else ""
    wholes = [one for one in shares if one.place == EVERYWHERE]
    return [*(claim + more for claim in claims_to_show[:1]), *(_whole_in_words(one, terse=True) for one in wholes[-1:])]


def shares_in_words(decompositions: Sequence[Decomposition]) -> list[str]:
    """What the decomposition of a study says: arm by arm, then path by path, then what cannot be known."""
    wholes = [one for one in decompositions if one.place == EVERYWHERE]
    if not wholes:
        return ["The effect could not be split: in no place do two programs have two usable blocks each."]
    sentences = [_whole_in_words(one) for one in reversed(wholes)]
    sentences += [line for one in reversed(wholes) if (line := _by_path(one, decompositions))]
    widest = max(wholes, key=lambda one: (len(one.servers), len(one.clients)))
    return sentences + _unknown(widest, [one for one in decompositions if not one.pooled])


def _whole_in_words(decomposition: Decomposition, terse: bool = False) -> str:
    """One arm over all places; on which of two it depends more only where that does not turn with anything left out."""
    parts = [f"{_percent(share)} is {_short(share.part)}" for share in _by_size(decomposition.shares)]
    protocol = decomposition.share(PROTOCOL)
    sentence = f"Of the variation of {name(decomposition.arm)} to {name(decomposition.reference)}, {listed(parts)}"
    if protocol is not None and protocol.without_low is not None and protocol.without_high is not None:
        ends = _ends(protocol.without_low, protocol.without_high)
        sentence += f"; whichever one level or program is left out, the {naming.factor()}'s share is {ends}"
    if decomposition.weighs == "program":
        sentence += f": the ratio depends more on the choice of program than on the {naming.factor()}"
    elif decomposition.weighs == "protocol":
        sentence += f": the ratio depends more on the {naming.factor()} than on the choice of program"
    elif not terse:
        sentence += (
            ". On which of the two it depends more is not said: that is undecided, or changes with what is left out"
        )
    return f"{sentence}."


def _by_path(decomposition: Decomposition, decompositions: Sequence[Decomposition]) -> str:
    """``HTTP/3 to HTTP/2 by path, the protocol's share: 80 % [70, 90] on far, ...``; empty with one path."""
    here = [one for one in decompositions if one.arm == decomposition.arm and one.place != EVERYWHERE and one.shares]
    by_path: dict[str, list[Decomposition]] = {}
    for one in here:
        by_path.setdefault(levels(one.place).get("path", ""), []).append(one)
    if len(by_path) < 2:
        return ""
    # A path with several places has them pooled, too.
    chosen = {path: next((one for one in ones if one.pooled), ones[0]) for path, ones in by_path.items()}
    shares = {path: share for path, one in chosen.items() if (share := one.share(PROTOCOL)) is not None}
    listed_shares = listed([f"{_percent(share)} on {path}" for path, share in shares.items()])
    pair = f"{name(decomposition.arm)} to {name(decomposition.reference)}"
    return f"Path by path the {naming.factor()}'s share of {pair} is {listed_shares}."


def definition(about: RunFacts) -> str:
    """What is split, and what the brackets mean."""
    sentence = (
        f"The effect is the log ratio to {name(about.baseline)} in one block, its variation the mean square: "
        f"none if no {naming.noun()} ever differed from another. "
        f"In brackets: {100 * about.confidence:.0f} % intervals, for these programs."
    )
    if about.is_as_it_was:
        return sentence
    anew = f"On {listed(about.by_netem)} the kernel's netem draws the losses of every trial anew."
    if len(about.by_netem) == len(about.study.get("paths") or {}) > 0:
        return f"{sentence} {anew}"
    alike = (
        "Block n has the same losses behind every server, and they are not independent of each other: what the losses "
        f"do to all of them alike counts as the {naming.factor()}'s."
    )
    return " ".join([sentence, alike, *([anew] if about.by_netem else [])])


def _by_size(shares: Sequence[Share]) -> list[Share]:
    """Largest first, noise last."""
    return sorted(shares, key=lambda one: (one.part == NOISE, -one.share))


def _whole_percent(share: float) -> str:
    """Whole per cents: more would be said than is known."""
    return "under 1" if 0 < share < 0.005 else "over 99" if 0.995 <= share < 1 else f"{100 * share:.0f}"


def _ends(low: float, high: float) -> str:
    first, last = _whole_percent(low), _whole_percent(high)
    return f"{first} %" if first == last else f"{first} to {last} %"


def _percent(share: Share) -> str:
    return f"{_whole_percent(share.share)} % [{_whole_percent(share.low)}, {_whole_percent(share.high)}]"


def _unknown(decomposition: Decomposition, split: Sequence[Decomposition]) -> list[str]:
    """What these programs cannot tell."""
    sentences = []
    for word, there in (("server", decomposition.servers), ("client", decomposition.clients)):
        if len(there) == 1:
            sentences.append(
                f"There was one {word} only, {there[0]}: what another {word} would change is not known, and "
                f"what this one does counts as the {naming.factor()}'s."
            )
        elif len(there) == 2:
            wide = _widest(split, word)
            sentences.append(
                f"Two {word}s, {listed(there)}, tell next to nothing about {word}s in general"
                + (f": as a random sample of all {word}s they leave a share of {wide} possible." if wide else ".")
            )
    if any(one.share(PROGRAM) for one in split):
        sentences.append(
            "Where servers and clients were not crossed, whether the server or the client makes the difference is not "
            "known."
        )
    known = [one for one in split if one.elsewhere_low is not None and one.elsewhere_high is not None]
    predictable = sum((one.elsewhere_low or 0) > 1 or (one.elsewhere_high or 2) < 1 for one in known)
    if known:
        sentences.append(
            f"For programs that were not measured, if these are a random sample of them, "
            f"the direction of the effect can be predicted in {predictable} of {counted(len(known), 'comparison')}."
        )
    return sentences


def _widest(split: Sequence[Decomposition], word: str) -> str:
    """The median over comparisons of the interval for any such programs."""
    ends = [
        (one.population_low, one.population_high)
        for here in split
        if (one := here.share(word)) and one.population_low is not None and one.population_high is not None
    ]
    if not ends:
        return ""
    lows, highs = sorted(low for low, _ in ends), sorted(high for _, high in ends)
    return _ends(lows[len(lows) // 2], highs[len(highs) // 2])
