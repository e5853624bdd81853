"""A server that is a service of a compose file, in a container of the lab's own Docker Engine."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path

from trifecta.design.builds import ServerService, service_data
from trifecta.design.errors import CannotError
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import Unsupported
from trifecta.implementations.servers.from_data import FromData
from trifecta.lab.container_spec import ContainerSpec, ImageSource


class FromCompose(FromData):
    """Does what the service says, with the words that it has; nothing of it runs outside of its container."""

    def __init__(self, name: str, service: ServerService) -> None:
        """``name``: the level."""
        super().__init__(name, service.program)
        self.service = service
        self._folder = Path(service.folder)
        self.source = f"given with the study: a service of a compose file in {self._folder}"
        build = service.build
        self._from = ImageSource(
            name=service.image,
            archive=self._folder / service.archive if service.archive else None,
            context=self._folder / build.context if build else None,
            dockerfile=build.dockerfile if build else "",
            arguments=tuple(sorted(build.arguments.items())) if build else (),
            target=build.target if build else "",
        )
        self._mounts = tuple((self._folder / source, target) for source, target in service.volumes)
        self.contained = ContainerSpec(self._from, bool(service.entrypoint), self._mounts, service.working_dir)

    def find(self) -> str:
        """The image's name and digest; of one that is to be built, the digest of all that goes into it."""
        from trifecta.lab.containers.state import docker_state

        state = docker_state("host")
        if not state.usable:
            raise Unsupported(f"{self.name} is in a container: {state.reason}; {state.remedy}")
        for path in (self._from.archive, self._from.context, *(path for path, _ in self._mounts)):
            if path is not None:
                self._refuse_elsewhere(path)
        return f"{self.service.image or 'built of'} sha256 {self._image[:12]}"

    def program_files(self) -> tuple[Path, ...]:
        """None: its program is in its image."""
        return ()

    def identity(self) -> str:
        """SHA-256 over the image's digest, what the service says, and what is in the files that it mounts."""
        from trifecta.lab.containers.images import tree_digest

        digest = hashlib.sha256(f"{self._image}\n{json.dumps(service_data(self.service), sort_keys=True)}\n".encode())
        for path, _ in self._mounts:
            below = [str(one.relative_to(path)) for one in path.rglob("*")]
            digest.update(tree_digest(path, ["", *below]).encode())
        return digest.hexdigest()

    def check_workload(self, workload: RequestsWorkload) -> None:
        """As of a command line; a container has a control group of its own, so that it is given no share of a core."""
        super().check_workload(workload)
        if workload.server_cpu is not None:
            raise Unsupported(f"{self.name} is in a container, which cannot be given a share; leave out server_cpu")

    def _refuse_elsewhere(self, path: Path) -> None:
        """Unsupported for what is not there, or leads out of the file's folder by a link."""
        real = path.resolve()
        if not real.is_relative_to(self._folder.resolve()):
            raise Unsupported(f"{self.name}: {path} leads out of the compose file's folder; put it there")
        if not real.exists():
            raise Unsupported(f"{self.name}: {path} is not there; make it, or correct the compose file")

    @cached_property
    def _image(self) -> str:
        from trifecta.lab.containers.images import image_digest

        try:
            return image_digest(self._from)
        except CannotError as error:
            raise Unsupported(f"{self.name}: {error}") from error
