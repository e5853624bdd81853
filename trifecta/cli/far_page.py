"""`trifecta race URL --page`: robots.txt, a visit by each browser, and what is compared by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trifecta.cli.first_looks import LookFindings, first_looks

if TYPE_CHECKING:
    from trifecta.contract.values import JsonObject
    from trifecta.workloads.far.choose import LookRequest


def browsers_of(given: Sequence[str]) -> list[str]:
    """The browsers of the option, each once; without it the usual one."""
    from trifecta.design.workloads.kinds import DEFAULT_BROWSER

    return list(dict.fromkeys(given)) or [DEFAULT_BROWSER]


def before(wanted: LookRequest, browsers: Sequence[str]) -> JsonObject:
    """The study as it would be if everything were answered; UserError for what cannot be visited whatever answers.

    CannotError for a browser that is not here.
    """
    from trifecta.design.model import PROTOCOLS
    from trifecta.implementations.registry import BROWSERS
    from trifecta.workloads.far import choose_page, supported

    for target in wanted.targets:
        supported.refuse_literal(target)
    if wanted.own_authorities:
        supported.refuse_many(wanted.authorities)
    supported.refuse_browsers(browsers, BROWSERS, owned=wanted.owned)
    return choose_page.document(wanted, choose_page.nothing_known(wanted, PROTOCOLS), browsers)


def look_at_pages(wanted: LookRequest, browsers: Sequence[str], *, quiet: bool) -> LookFindings:
    """The robots.txt, one look at each address, and visits by each browser; what they let compare."""
    from trifecta.design import manners
    from trifecta.report.far.words import page_lines, place_lines
    from trifecta.workloads.far import choose, choose_page

    visits = manners.PAGE_LOOKS * len(browsers)
    with first_looks(wanted.workload.manners.pace_per_s, visits, quiet=quiet) as look:
        choose_page.ask_robots(wanted, look.stop, look.tell)
        observations = choose.look(look.engine, wanted, look.stop, look.folder, look.tell)
        findings = choose_page.look(
            look.engine, wanted, browsers, observations, look.folder, stop=look.stop, tell=look.tell
        )
    lines = [line for place in observations for line in place_lines(place)]
    lines += [line for page in findings.pages for line in page_lines(page)]
    lines += [f"Left out: {line}" for line in findings.base.left_out]
    return LookFindings(lines, choose_page.document(wanted, findings, browsers), findings.octets, findings.requests)
