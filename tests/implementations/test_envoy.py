"""The adapter of Envoy, and Envoy itself where it is fetched."""

from __future__ import annotations

import subprocess

import pytest
from ruamel.yaml import YAML

from tests.implementations.site_study import assert_answered, measure
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import ServerOptions, Site, Unsupported
from trifecta.implementations.servers import envoy
from trifecta.implementations.servers.envoy import RECIPE, Envoy
from trifecta.implementations.servers.origin_backend import BACKEND_ADDRESS
from trifecta.lab.certificates import make_certificates

fetched = pytest.mark.skipif(not RECIPE.installed(), reason="envoy is not in the cache: trifecta get envoy")
BBR = "envoy.reloadable_features.FLAGS_envoy_quiche_reloadable_flag_quic_default_to_bbr"


@pytest.fixture
def site(tmp_path):
    state = tmp_path / 'a "strange": #folder'
    state.mkdir()
    certificates = make_certificates(state / "pki", ["envoy.lab"], [])
    return Site(tmp_path / "site", certificates, "10.77.0.2", 8443, state)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program in Envoy's place that tells a version as Envoy does."""
    program = tmp_path / "envoy"
    program.write_text('#!/bin/sh\necho\necho "$0  version: 0123abc/1.40.0/Clean/RELEASE/BoringSSL"\necho\n')
    program.chmod(0o755)
    monkeypatch.setattr(envoy, "_program", lambda: program)
    return program


def written(site, options):
    path = Envoy().command(site, options).arguments[2]
    return YAML(typ="safe").load(path.read_text())


def managers(config):
    """The transport socket and the HTTP connection manager of each listener, by name."""
    chains = {each["name"]: each["filter_chains"][0] for each in config["static_resources"]["listeners"]}
    return {
        name: (chain["transport_socket"]["typed_config"], chain["filters"][0]["typed_config"])
        for name, chain in chains.items()
    }


def test_both_listeners_are_on_the_site_s_port_and_pass_on_to_the_origin(site, program):
    config = written(site, ServerOptions())
    tcp, udp = (each["address"]["socket_address"] for each in config["static_resources"]["listeners"])
    assert tcp == {"address": "10.77.0.2", "port_value": 8443}
    assert udp == {"protocol": "UDP", "address": "10.77.0.2", "port_value": 8443}
    cluster = config["static_resources"]["clusters"][0]
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    assert endpoint == {"address": BACKEND_ADDRESS, "port_value": 8443}
    upstream = cluster["transport_socket"]["typed_config"]
    validation = upstream["common_tls_context"]["validation_context"]
    assert upstream["sni"] == "envoy.lab"
    assert validation["trusted_ca"]["filename"] == str(site.certificates.authority)
    assert validation["match_typed_subject_alt_names"] == [{"san_type": "DNS", "matcher": {"exact": "envoy.lab"}}]


def test_what_a_cell_asks_is_in_the_configuration(site, program):
    asked = managers(written(site, ServerOptions(tls_version="1.2", max_streams=321)))
    tls, over_tcp = asked["tcp"]
    assert tls["common_tls_context"]["tls_params"] == {
        "tls_minimum_protocol_version": "TLSv1_2",
        "tls_maximum_protocol_version": "TLSv1_2",
    }
    assert tls["common_tls_context"]["alpn_protocols"] == ["h2", "http/1.1"]
    certificate = tls["common_tls_context"]["tls_certificates"][0]
    assert certificate["certificate_chain"]["filename"] == str(site.certificates.chain)
    assert over_tcp["http2_protocol_options"]["max_concurrent_streams"] == 321
    over_udp = asked["udp"][1]
    assert over_udp["codec_type"] == "HTTP3"
    assert over_udp["http3_protocol_options"]["quic_protocol_options"]["max_concurrent_streams"] == 321


def test_nothing_is_logged_administered_or_retried(site, program):
    config = written(site, ServerOptions())
    assert "admin" not in config
    text = (site.state / "envoy.yaml").read_text()
    assert "access_log" not in text.replace("access\n", "")
    assert "retry" not in text
    assert "$" not in text


@pytest.mark.parametrize(
    ("asked", "flag", "quic"), [("cubic", False, "cubic"), ("bbr", True, "bbr"), ("reno", False, "cubic")]
)
def test_congestion_control_is_set_and_told_as_it_is(site, program, asked, flag, quic):
    options = ServerOptions(congestion_control=asked)
    assert written(site, options)["layered_runtime"]["layers"][0]["static_layer"][BBR] is flag
    assert Envoy().declared(options)["congestion_control"] == {"tcp": asked, "quic": quic}


def test_version_and_build_are_read_from_the_program(program):
    assert Envoy().find() == "1.40.0"
    said = Envoy().declared(ServerOptions())
    assert (said["tls_library"], said["build"]) == ("BoringSSL", "RELEASE, Clean, 0123abc")


def test_a_program_that_tells_no_version_is_unsupported(program):
    program.write_text("#!/bin/sh\necho hello\n")
    envoy._built.cache_clear()
    with pytest.raises(Unsupported, match="trifecta get envoy --force"):
        Envoy().find()


def test_without_envoy_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unsupported, match=r"run: trifecta get envoy$"):
        Envoy().find()


def test_envoy_on_path_is_used_where_none_is_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "envoy").write_text("#!/bin/sh\necho version: 9/1.2.3/Clean/RELEASE/BoringSSL\n")
    (tmp_path / "envoy").chmod(0o755)
    assert Envoy().find() == "1.2.3"


def test_zero_rtt_is_not_claimed():
    Envoy().check_workload(RequestsWorkload(method="POST"))
    with pytest.raises(Unsupported, match="0-RTT"):
        Envoy().check_workload(RequestsWorkload(zero_rtt=True))


@fetched
@pytest.mark.parametrize("options", [ServerOptions(), ServerOptions(tls_version="1.2", congestion_control="bbr")])
def test_envoy_takes_its_own_configuration(site, options):
    command = Envoy().command(site, options)
    done = subprocess.run([*command.arguments, "--mode", "validate"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr


@fetched
@pytest.mark.lab
def test_a_study_measures_it_over_every_protocol_and_says_that_it_adds_a_hop(tmp_path):
    rows = measure("envoy", tmp_path)
    assert_answered(rows)
    for row in rows:
        assert row["server"]["proxy"] is True
        assert row["server"]["backend"].startswith("origin ")
        assert row["server"]["backend_cpu_ns"] > 0
        assert row["server"]["backend_congestion_control"] == "cubic"
