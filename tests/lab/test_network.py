"""The lab's network: what crosses, what is pinned, and how fast it comes and goes."""

from __future__ import annotations

import json

import pytest

from tests.lab.inside import run_inside
from trifecta.lab.topology import Route

pytestmark = pytest.mark.lab


def inside(code: str) -> object:
    done = run_inside(code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_hosts_have_their_addresses_neighbours_and_routes() -> None:
    found = inside(
        """
        import json, subprocess
        from trifecta.lab.network import WIRE, two_hosts
        def ask(host, *arguments):
            return json.loads(host.popen(["ip", "-j", *arguments], stdout=subprocess.PIPE).communicate()[0])
        with two_hosts() as lab:
            print(json.dumps({
                "addresses": [a["local"] for a in ask(lab.host("server"), "address", "show", "eth0")[0]["addr_info"]],
                "mtu": ask(lab.host("client"), "link", "show", "eth0")[0]["mtu"],
                "neighbours": [(n["dst"], n["state"]) for n in ask(lab.host("client"), "neighbour")],
                "route": ask(lab.host("client"), "-d", "route")[0],
                "middle": [a["local"] for d in ask(lab.middle(WIRE), "address") for a in d["addr_info"]],
                "devices": sorted(d["ifname"] for d in ask(lab.middle(WIRE), "link")),
            }))
        """
    )
    assert isinstance(found, dict)
    assert found["addresses"] == ["10.77.0.2", "fd77::2"]
    assert found["mtu"] == 1500
    assert ["10.77.0.2", ["PERMANENT"]] in found["neighbours"]
    assert "cubic" in json.dumps(found["route"])
    assert found["middle"] == []
    assert found["devices"] == ["lo", "ra", "rb"]


def test_nothing_crosses_without_the_link() -> None:
    assert (
        inside(
            """
        import json, socket
        from trifecta.lab.network import SERVER_ADDRESS, two_hosts
        with two_hosts() as lab:
            with lab.host("server").inside():
                server = socket.create_server((SERVER_ADDRESS, 80))
            with lab.host("client").inside():
                client = socket.socket()
            client.settimeout(0.3)
            try:
                client.connect((SERVER_ADDRESS, 80))
                print(json.dumps("crossed"))
            except TimeoutError:
                print(json.dumps("nothing"))
        """
        )
        == "nothing"
    )


def test_congestion_control_follows_the_lab_and_can_be_changed() -> None:
    found = inside(
        """
        import json, socket
        from trifecta.lab.network import SERVER_ADDRESS, two_hosts
        found = []
        with two_hosts() as lab:
            for name in ("cubic", "reno", "bbr"):
                lab.use_congestion_control(name)
                with lab.host("client").inside():
                    abroad = socket.socket()
                    abroad.setblocking(False)
                    abroad.connect_ex((SERVER_ADDRESS, 80))
                found.append(abroad.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\\0")[0].decode())
                for address in ("127.0.0.2", "::1"):  # a proxy to the server behind it
                    found.append(lab.host("server").congestion_control(address))
        print(json.dumps(found))
        """
    )
    assert found == ["cubic"] * 3 + ["reno"] * 3 + ["bbr"] * 3


def test_settings_of_tcp_are_those_of_new_connections_and_can_be_changed() -> None:
    """A socket's window and starting point of loss detection are in its TCP_INFO (linux/tcp.h)."""
    assert inside(
        """
        import json, socket, struct
        from trifecta.design.tuning import TcpSettings
        from trifecta.lab.network import SERVER_ADDRESS, two_hosts
        found = []
        with two_hosts() as lab:
            for window, reordering in ((None, 3), (2, 3), (64, 1000), (None, 3)):
                lab.use_tcp("cubic", TcpSettings(initial_window=window, reordering=reordering))
                with lab.host("server").inside(), socket.create_server(("127.0.0.2", 0)) as there:
                    with socket.create_connection(there.getsockname()) as here:
                        info = here.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                found.append([struct.unpack_from("I", info, 80)[0], struct.unpack_from("I", info, 88)[0]])
        print(json.dumps(found))
        """
    ) == [[10, 3], [2, 3], [64, 1000], [10, 3]]


def test_routes_ask_for_segments_of_a_packets_size() -> None:
    """Of 1280 octets 40 are headers of IPv4 and TCP, or 60 of IPv6; datagrams stay what they are."""
    assert Route("10.77.0.2/32", "eth0").line("cubic", 10, 1280).endswith("initcwnd 10 advmss 1240")
    assert Route("fd77::2/128", "eth0").line("cubic", None, 1280).endswith("advmss 1220")
    assert "advmss" not in Route("10.77.0.2/32", "eth0").line("cubic", 10)


def test_what_a_window_does_after_a_rest_is_set_in_every_host() -> None:
    assert inside(
        """
        import json
        from trifecta.design.tuning import TcpSettings
        from trifecta.lab.network import two_hosts
        found = []
        with two_hosts() as lab:
            for restarts in (True, False, True):
                lab.use_tcp("cubic", TcpSettings(idle_restarts=restarts))
                name = "/proc/sys/net/ipv4/tcp_slow_start_after_idle"
                found.append([lab.host(host).read(name).strip() for host in ("client", "server")])
        print(json.dumps(found))
        """
    ) == [["1", "1"], ["0", "0"], ["1", "1"]]


def test_settings_are_read_back() -> None:
    found = inside(
        """
        import json
        from trifecta.lab.network import two_hosts
        with two_hosts() as lab:
            print(json.dumps([lab.kernel.known, lab.host("client").read("/proc/sys/net/ipv4/tcp_no_metrics_save")]))
        """
    )
    assert isinstance(found, list)
    assert found[0]["net.ipv4.tcp_no_metrics_save"] == "1"
    assert found[1] == "1\n"


def test_programs_start_in_their_host_on_their_cpus() -> None:
    found = inside(
        """
        import json, os, subprocess, sys
        from trifecta.lab.network import two_hosts
        before = os.sched_getaffinity(0)
        cpu = max(before)
        code = "import os; print(os.readlink('/proc/self/ns/net'), sorted(os.sched_getaffinity(0)), "
        code += "os.getpgid(0) == os.getpid())"
        with two_hosts() as lab:
            server = lab.host("server")
            child = server.popen([sys.executable, "-c", code], cpus=frozenset({cpu}), stdout=subprocess.PIPE)
            out = child.communicate()[0].decode()
            with server.inside():
                there = os.readlink("/proc/thread-self/ns/net")
            here = os.readlink("/proc/thread-self/ns/net")
        print(json.dumps([out == f"{there} [{cpu}] True\\n", here != there, os.sched_getaffinity(0) == before]))
        """
    )
    assert found == [True, True, True]


def test_what_shares_the_links_core_lets_it_go_first_where_it_may_not_run_in_real_time() -> None:
    """Niceness counts within a session only (sched_autogroup): those beside the link are in one with it."""
    found = inside(
        """
        import json, os, subprocess, sys
        from trifecta.lab import host, linux
        linux.may_run_in_real_time = lambda: REAL_TIME
        from trifecta.lab.network import two_hosts
        cpus = sorted(os.sched_getaffinity(0))
        host.pin_table = lambda: {"link": frozenset({cpus[0]})}
        code = "import os, threading; told = []; "
        code += "one = threading.Thread(target=lambda: told.append(os.getpriority(os.PRIO_PROCESS, 0))); "
        code += "input(); one.start(); one.join(); "
        code += f"print(*told, os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0) == {os.getsid(0)})"
        with two_hosts() as lab:
            def nice(cpus, **how):
                child = lab.host("server").popen([sys.executable, "-c", code], cpus=cpus, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, **how)
                return child.communicate(b"go")[0].decode().split()
            on, off = frozenset(cpus[:1]), frozenset(cpus[1:2])
            apart = nice(off) if off else ["0", "0", "False"]
            print(json.dumps([nice(on), nice(None), apart, nice(on, yielding=False)]))
        """.replace("REAL_TIME", "False")
    )
    beside, apart, link = ["19", "19", "True"], ["0", "0", "False"], ["0", "0", "True"]
    assert found == [beside, beside, apart, link]


def test_a_missing_program_is_one_clear_line() -> None:
    found = inside(
        """
        import json
        from trifecta.design.errors import CannotError
        from trifecta.lab.network import two_hosts
        with two_hosts() as lab:
            try:
                lab.host("client").popen(["no-such-program"])
            except CannotError as error:
                print(json.dumps(str(error)))
        """
    )
    assert found == "cannot start no-such-program: No such file or directory; is it installed?"
