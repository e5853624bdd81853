"""The recipes of `deploy/`, as far as a machine without a cloud can check them."""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from tests.docs.examples import ROOT
from trifecta import __version__

DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
RECIPES = [path for path in FILES if path.suffix == ".yaml"]
LAUNCHED = ("aws.yaml", "machines.yaml")
PAGE = (ROOT / "docs/cluster.md").read_text()
COMMANDS = ("setup_commands", "head_setup_commands", "head_start_ray_commands", "worker_start_ray_commands")
RAY = re.compile(r"(?:ray(?:\[default\])?==|rayVersion: \")(\d+\.\d+\.\d+)")
PROBE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "tcpSocket": {"type": "object", "required": ["port"]},
        "exec": {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}},
        "periodSeconds": {"type": "integer", "minimum": 1},
        "failureThreshold": {"type": "integer", "minimum": 1},
    },
}
POD = {
    "type": "object",
    "required": ["spec"],
    "additionalProperties": False,
    "properties": {
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["containers"],
            "additionalProperties": False,
            "properties": {
                "automountServiceAccountToken": {"const": False},
                "hostUsers": {"const": False},
                "affinity": {"type": "object"},
                "containers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["name", "image", "resources"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string"},
                            "image": {"type": "string"},
                            "ports": {"type": "array"},
                            "env": {"type": "array", "items": {"type": "object", "required": ["name", "value"]}},
                            "resources": {"type": "object", "required": ["requests", "limits"]},
                            "readinessProbe": PROBE,
                            "livenessProbe": PROBE,
                            "securityContext": {
                                "type": "object",
                                "additionalProperties": False,
                                "properties": {
                                    "runAsUser": {"type": "integer"},
                                    "capabilities": {"type": "object"},
                                    "procMount": {"enum": ["Default", "Unmasked"]},
                                    "appArmorProfile": {"type": "object", "required": ["type"]},
                                    "seccompProfile": {"type": "object", "required": ["type"]},
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
"""Of a pod's template the fields that the recipe uses, as Kubernetes 1.33 has them."""
STARTS = {"type": "object", "additionalProperties": {"type": "string"}}  # KubeRay takes text alone, `false` is none
RAY_CLUSTER = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayCluster"},
        "spec": {
            "type": "object",
            "required": ["rayVersion", "headGroupSpec", "workerGroupSpecs"],
            "additionalProperties": False,
            "properties": {
                "rayVersion": {"type": "string"},
                "authOptions": {"type": "object", "required": ["mode"], "properties": {"mode": {"const": "token"}}},
                "headGroupSpec": {
                    "type": "object",
                    "required": ["rayStartParams", "template"],
                    "additionalProperties": False,
                    "properties": {"serviceType": {"const": "ClusterIP"}, "rayStartParams": STARTS, "template": POD},
                },
                "workerGroupSpecs": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["groupName", "replicas", "minReplicas", "maxReplicas", "template"],
                        "additionalProperties": False,
                        "properties": {
                            "groupName": {"type": "string"},
                            "replicas": {"type": "integer"},
                            "minReplicas": {"type": "integer"},
                            "maxReplicas": {"type": "integer"},
                            "rayStartParams": STARTS,
                            "template": POD,
                        },
                    },
                },
            },
        },
    },
}


def read(name: str) -> list[Any]:
    """The documents of a recipe; no object is made from it."""
    return list(YAML(typ="safe", pure=True).load_all((DEPLOY / name).read_text()))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(key)
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


def test_the_page_names_every_file_and_every_file_the_page() -> None:
    assert FILES
    for path in FILES:
        assert f"(../{path.relative_to(ROOT)})" in PAGE, path.name
        assert "docs/cluster.md" in path.read_text().partition("\n")[0], path.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_secret_and_nobody_outside(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"AKIA|PRIVATE KEY|password|secret|auth_token: [^~]", text, re.IGNORECASE)
    for address in re.findall(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", text):
        assert ipaddress.ip_address(address).is_private, address
    assert not re.search(r"\b0\.0\.0\.0\b", text)
    assert ":latest" not in text


def test_all_say_one_version() -> None:
    found = {version for path in FILES for version in RAY.findall(path.read_text())}
    assert len(found) == 1
    locked = re.search(r"^ray(?:\[\w+\])?==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert locked is None or found == {locked[1]}, "the recipes install another Ray than requirements.lock"


@pytest.mark.parametrize("name", LAUNCHED)
def test_commands_are_ones_of_bash(name: str) -> None:
    (recipe,) = read(name)
    commands = [command for part in COMMANDS for command in recipe.get(part, [])]
    assert len(commands) >= 6
    for command in commands:
        done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), command


@pytest.mark.parametrize("name", LAUNCHED)
def test_ray_starts_behind_a_token_and_the_head_measures_nothing(name: str) -> None:
    (recipe,) = read(name)
    (head,) = [one for one in recipe["head_start_ray_commands"] if "ray start" in one]
    (node,) = [one for one in recipe["worker_start_ray_commands"] if "ray start" in one]
    assert all("RAY_AUTH_MODE=token" in one and "--disable-usage-stats" in one for one in (head, node))
    assert all("RAY_worker_niceness=0" in one for one in (head, node)), "trials would yield to whatever else runs there"
    assert "--num-cpus=0" in head
    assert "--include-dashboard=false" in head
    assert "--address=$RAY_HEAD_IP:6379" in node
    assert recipe["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"


@pytest.mark.parametrize("path", ["README.md", "docs/gate.md", "deploy/aws.yaml", "deploy/machines.yaml"])
def test_of_the_two_wheels_that_with_the_engine_is_installed(path: str) -> None:
    """As `make dist` leaves them in one folder: both at once would be a conflict to pip, or one name to a shell."""
    tags = ("manylinux_2_34_x86_64", "any")
    asked = re.findall(r"trifecta-\*\S*?\.whl", (ROOT / path).read_text())
    assert asked
    for pattern in asked:
        assert [tag for tag in tags if fnmatch(f"trifecta-{__version__}-py3-none-{tag}.whl", pattern)] == [tags[0]]


@pytest.mark.parametrize("name", LAUNCHED)
def test_rays_own_launcher_takes_it(name: str) -> None:
    """As `ray up` does before it talks to any machine: its defaults filled in, then its schema."""
    util = pytest.importorskip("ray.autoscaler._private.util", reason="ray is not installed (extra 'cluster')")
    prepared = util.prepare_config(read(name)[0])
    util.validate_config(prepared)
    assert prepared["head_start_ray_commands"] == read(name)[0]["head_start_ray_commands"]


def test_aws_has_machines_without_an_address_of_the_outside() -> None:
    (recipe,) = read("aws.yaml")
    kinds = recipe["available_node_types"]
    assert recipe["provider"]["use_internal_ips"] is True
    assert kinds[recipe["head_node_type"]]["resources"] == {"CPU": 0}
    assert kinds["node"]["min_workers"] == kinds["node"]["max_workers"] == recipe["max_workers"]
    head, node = (kinds[name]["node_config"] for name in ("head", "node"))
    assert node["CpuOptions"] == {"CoreCount": 4, "ThreadsPerCore": 1}, "threads would share a core"
    assert {**head, **{own: node[own] for own in ("InstanceType", "CpuOptions")}} == node
    assert not re.match(r"t\d", node["InstanceType"])


def test_machines_are_those_of_the_vagrantfile() -> None:
    (recipe,) = read("machines.yaml")
    vagrant = (DEPLOY / "Vagrantfile").read_text()
    (number,) = re.findall(r"^MACHINES = (\d+)", vagrant, re.MULTILINE)
    assert 'ip: "192.168.56.#{10 + number}"' in vagrant
    addresses = [recipe["provider"]["head_ip"], *recipe["provider"]["worker_ips"]]
    assert addresses == [f"192.168.56.{10 + one}" for one in range(int(number))]
    assert recipe["min_workers"] == recipe["max_workers"] == len(addresses) - 1
    assert f"--node-ip-address={addresses[0]} " in " ".join(recipe["head_start_ray_commands"])


def test_the_vagrantfile_is_whole() -> None:
    text = (DEPLOY / "Vagrantfile").read_text()
    assert re.search(r'box_version = "\d', text)
    code = re.sub(r"<<~SHELL.*?^ *SHELL$", '""', text, flags=re.DOTALL | re.MULTILINE)
    code = re.sub(r"(^|\s)#[^{\n].*", "", code)
    assert len(re.findall(r"\bdo\b", code)) == len(re.findall(r"^\s*end$", code, re.MULTILINE)) > 0
    if ruby := shutil.which("ruby"):
        done = subprocess.run([ruby, "-c", DEPLOY / "Vagrantfile"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_kuberay_has_what_a_lab_needs_and_no_more() -> None:
    cluster, policy = read("kuberay.yaml")
    jsonschema.validate(cluster, RAY_CLUSTER)
    head, (group,) = cluster["spec"]["headGroupSpec"], cluster["spec"]["workerGroupSpecs"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    (pod, (node,)) = group["template"]["spec"], group["template"]["spec"]["containers"]
    assert pod["hostUsers"] is False, "root of a pod would be root of the machine"
    assert node["securityContext"]["capabilities"] == {"add": ["SYS_ADMIN", "NET_ADMIN", "NET_RAW"]}
    assert node["securityContext"]["procMount"] == "Unmasked"
    assert node["resources"]["requests"] == node["resources"]["limits"], "cores would be shared"
    assert group["replicas"] == group["minReplicas"] == group["maxReplicas"]
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"].items() <= group["template"]["metadata"]["labels"].items()
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert {"name": "RAY_worker_niceness", "value": "0"} in node["env"], "trials would yield to all else"
    (container,) = head["template"]["spec"]["containers"]
    assert "securityContext" not in container
    assert node["image"] == container["image"]
    assert node["image"].endswith(f":{__version__}")
    assert policy["kind"] == "NetworkPolicy"
    own = {"ray.io/cluster": cluster["metadata"]["name"]}
    assert policy["spec"]["podSelector"] == {"matchLabels": own}
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": own}}]}]


def test_heat_names_only_what_it_has() -> None:
    (template,) = read("openstack.yaml")
    assert str(template["heat_template_version"]) == "2018-08-31"
    assert {*template} == {"heat_template_version", "description", "parameters", "resources", "outputs"}
    kinds = {resource["type"] for resource in template["resources"].values()}
    assert kinds == {"OS::Nova::ServerGroup", "OS::Neutron::SecurityGroup", "OS::Heat::ResourceGroup"}
    asked: dict[str, set[str]] = {"get_param": set(), "get_resource": set(), "get_attr": set()}

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in asked:
                    asked[key].add(inner[0] if isinstance(inner, list) else inner)
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(template)
    assert asked["get_param"] == {*template["parameters"]}
    assert asked["get_resource"] | asked["get_attr"] == {*template["resources"]}
    assert not any("floating" in text.lower() for text in texts(template["resources"]))
