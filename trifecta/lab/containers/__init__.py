"""Services in containers: a real Docker Engine in a host of the lab, and programs of the engine in its containers."""

from trifecta.lab.containers.daemon import DockerEngine
from trifecta.lab.containers.place import ContainerPlace
from trifecta.lab.containers.process import ContainerProcess
from trifecta.lab.containers.state import DockerState, Network, docker_state

__all__ = ["ContainerPlace", "ContainerProcess", "DockerEngine", "DockerState", "Network", "docker_state"]
