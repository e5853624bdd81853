"""A server elsewhere, asked from several places: the engine is brought there, and places are never mixed."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.test_far_signs import answered
from tests.lab.three_hosts import missing
from tests.workloads.test_checks_fail import _engine_missing
from tests.workloads.test_failures import assert_whole
from tests.workloads.test_hosts import amiss, inside, private_in, rows
from trifecta.design.errors import CannotError, UserError
from trifecta.design.model import Study
from trifecta.design.study_file import parse_study
from trifecta.design.workloads.far import FarWorkload
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace
from trifecta.lab.ssh.keeper import parse_addresses
from trifecta.workloads.far import supported
from trifecta.workloads.far.configs import Request
from trifecta.workloads.far.look import Looker
from trifecta.workloads.far.rate_limiter import RateLimiter
from trifecta.workloads.far.vantages import DistantLooker, Vantages
from trifecta.workloads.stat import read_url

URL = "https://a.example/"
WHY = missing() or _engine_missing()


def study(more: str = "") -> Study:
    text = f"study: far\nworkload: {{kind: far, requests: 4, url: '{URL}'}}\nfactors: {{vantage: [here, 'ssh://a']}}\n"
    return parse_study(text + more, "far.yaml")


class Machine:
    """A host whose resolver says what a test wants."""

    lost: str | None = None

    def __init__(self, *told: str) -> None:
        self.told = told

    def resolve(self, name: str) -> list[str]:
        assert name == "a.example"
        return [*self.told]


def vantages(machine: Machine) -> Vantages:
    found = Vantages(["here", "ssh://a", "ssh://a"], Path("engine"))
    assert found._levels == ["ssh://a"]
    found._machines._standing["ssh://a"] = machine  # type: ignore[assignment]
    return found


def test_addresses_are_each_told_once_and_in_order() -> None:
    said = "192.0.2.2       STREAM a.example\n192.0.2.2       DGRAM\n2001:db8::1     STREAM\nfe80::1%eth0 RAW\n\n"
    assert parse_addresses(said) == ["192.0.2.2", "2001:db8::1", "fe80::1"]


def test_a_name_is_looked_up_where_it_is_asked_from() -> None:
    there = vantages(Machine("192.0.2.2", "2001:0db8::1"))
    found = there.resolve("ssh://a", read_url(URL))
    assert (found.addresses, found.took_ns) == (("192.0.2.2", "2001:db8::1"), None)
    assert there.resolve("ssh://a", read_url("https://192.0.2.7/")).addresses == ("192.0.2.7",)


def test_what_a_host_says_is_no_address_because_it_says_so() -> None:
    with pytest.raises(CannotError, match=r"host ssh://a: what its resolver says of a\.example is no address"):
        vantages(Machine("192.0.2.2;reboot")).resolve("ssh://a", read_url(URL))


def test_who_is_lost_is_named() -> None:
    machine = Machine()
    there = vantages(machine)
    assert there.lost("ssh://a") is None
    machine.lost = "the connection ended"
    assert there.lost("ssh://a") == "host ssh://a is lost (the connection ended)"
    assert there.lost("here") is None


def test_a_look_from_there_measures_no_connects_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def once(_self: Looker, request: Request, connects: list[int] | None = None) -> Any:
        asked.append(connects)
        return answered(request.protocol)

    monkeypatch.setattr(Looker, "once", once)
    workload = FarWorkload(url=URL)
    looker = DistantLooker(
        LocalPlace(LocalHost()),
        workload,
        RateLimiter(workload.manners),
        tmp_path / "log",
        lambda: False,
        samples=tmp_path,
    )
    looker.once(Request(read_url(URL), "192.0.2.1", "h2", tmp_path / "ca.pem"), [])
    assert asked == [None]
    with looker._draft() as file:
        file.write_text("samples")
        assert file.parent == tmp_path
    assert not file.exists()


def test_places_are_not_compared_with_each_other() -> None:
    with pytest.raises(UserError, match="compare: paths from two places differ by far more than protocols do"):
        supported.far_supported(study("compare: vantage\n"))


PREPARE = """
from contextlib import contextmanager
from trifecta.contract.origin import OriginConfig, OriginReady
from trifecta.lab.certificates import make_certificates
from trifecta.lab.place import LocalPlace

@contextmanager
def asked(hosts, requests, pace):
    "An origin on the host `server`, and the words that ask it from here and from the host `client`."
    address = hosts.lab.address(SERVER)
    made = make_certificates(folder / "pki", ["server.lab"], [address])
    files = {"certificate_file": str(made.chain), "key_file": str(made.key)}
    (folder / "far.yaml").write_text(
        "study: places\\n"
        f"workload: {{kind: far, requests: {requests}, url: 'https://{address}:8443/bytes/1000', "
        f"ca: '{made.authority}', owned: true, pace: {pace}}}\\n"
        f"factors: {{protocol: [h2, h3], connection: [new], vantage: [here, '{hosts.url(CLIENT)}']}}\\n"
    )
    with LocalPlace(hosts.lab.host(SERVER)).start("origin", folder / "origin.log") as origin:
        origin.configure(OriginConfig(address=address, port=8443, alt_svc=True, **files))
        origin.wait_ready(OriginReady, 10)
        yield ["run", str(folder / "far.yaml"), "--yes", "--quiet", "--out", str(folder / "run"), "--blocks"]
"""
in_the_lab = pytest.mark.skipif(bool(WHY), reason=WHY or "there")


def in_three_hosts(folder: Path, code: str) -> Any:
    return inside(folder, PREPARE + textwrap.dedent(code))


@pytest.mark.lab
@in_the_lab
def test_a_server_is_asked_from_here_and_from_there(tmp_path: Path) -> None:
    code, errors, left, there = in_three_hosts(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            with asked(hosts, 4, "200/s") as words:
                code, said, errors = hosts.run(*words, "1")
            left = hosts.wait_clean(30)[CLIENT]
            there = hosts.url(CLIENT)
        print(json.dumps([code, errors, left, there]))
        """,
    )
    assert code == 0, errors
    assert left == []
    run = tmp_path / "run"
    found = rows(run)
    assert len(found) == 2 * 3
    assert amiss(found) == []
    for row in found:
        from_there = json.loads(row["factors_json"])["vantage"] == there
        assert f"vantage={there if from_there else 'here'}" in row["cell"]
        machine, load = json.loads(row["machine_json"]), json.loads(row["load_json"])
        assert (machine["other_cpu_share"] is None) is from_there, "this machine's load says nothing of another"
        assert load["samples"] == 4
    document = json.loads((run / "run.json").read_text())
    assert document["hosts"].keys() == {there}
    assert document["hosts"][there]["kernel"].startswith("Linux")
    for look in document["elsewhere"]:
        assert [place.get("vantage") for place in look["places"]] == [None, there]
        assert look["places"][1]["loaded_rtt_ns"] is None
    assert_whole(run)
    assert private_in(run, tmp_path / "home") == []


@pytest.mark.long
@pytest.mark.lab
@in_the_lab
def test_a_place_that_is_lost_costs_a_trial_and_is_connected_to_again(tmp_path: Path) -> None:
    code, errors, left = in_three_hosts(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            with asked(hosts, 8, "4/s") as words:
                process = hosts.start(*words, "2", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                hosts.at_work(folder / "run", CLIENT, "load", within_s=90)
                time.sleep(0.5)
                os.kill(hosts.sessions(CLIENT)[-1], signal.SIGKILL)
                _, errors = process.communicate(timeout=150)
            left = hosts.wait_clean(35)[CLIENT]
        print(json.dumps([process.returncode, errors.decode(), left]))
        """,
    )
    assert code == 0, errors
    assert left == []
    found = rows(tmp_path / "run")
    assert len(found) == 2 * 2 * 3
    (marked,) = [row for row in found if row["error"] is not None]
    assert "ssh://" in json.loads(marked["factors_json"])["vantage"]
    assert "lost" in marked["error"]
    assert not marked["valid"]
    assert_whole(tmp_path / "run")


@pytest.mark.lab
@in_the_lab
def test_a_client_here_and_a_server_there(tmp_path: Path) -> None:
    code, errors, left = inside(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            code, said, errors = hosts.run(*race(hosts, folder / "run", blocks=1, client="here"))
            left = hosts.wait_clean(30)
        print(json.dumps([code, errors, left]))
        """,
    )
    assert code == 0, errors
    assert left == {"client": [], "server": []}
    assert amiss(rows(tmp_path / "run")) == []
