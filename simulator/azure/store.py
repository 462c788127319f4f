"""The simulated subscription on disk: one JSON file per resource, replaced atomically to survive a kill."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from simulator.azure.ids import ResourceId, parse_id

Body = dict[str, Any]
_PARTIAL = ".partial"


@dataclass
class Record:
    """A stored resource. `body` lacks id, name and type, which come from `id`."""

    id: ResourceId
    body: Body
    error: Body | None = None
    correlation: str = ""
    """`x-ms-correlation-request-id` of the creating request."""
    facts: dict[str, Any] = field(default_factory=dict)
    """The simulator's state that ARM does not show."""

    @property
    def properties(self) -> Body:
        properties: Body = self.body.setdefault("properties", {})
        return properties

    @property
    def state(self) -> str:
        state: str = self.properties.get("provisioningState", "Succeeded")
        return state

    @state.setter
    def state(self, state: str) -> None:
        self.properties["provisioningState"] = state

    @property
    def busy(self) -> bool:
        """Whether an operation is running, or was interrupted by a kill."""
        return self.state not in ("Succeeded", "Failed", "Canceled")


class _OnDisk(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str
    body: Body
    error: Body | None = None
    correlation: str = ""
    facts: dict[str, Any] = {}


class BadRecords(Exception):
    """Unreadable resource files on disk. The message lists the files and the fix."""

    def __init__(self, found: Mapping[Path, str]) -> None:
        listed = "".join(f"\n  {file}: {why}" for file, why in found.items())
        super().__init__(
            f"simulated Azure cannot read {len(found)} of its resources. Another program changed the files, or another "
            f"version of the simulator wrote them:{listed}\n"
            "To fix it, run one of:\n"
            f"  rm {shlex.join(map(str, found))}    # deletes these resources; then run `pulumi refresh`\n"
            "  make clean    # deletes the state of the simulator, with all stacks"
        )


class Store:
    """All resources. Callers that read and then write must hold `lock`."""

    def __init__(self, folder: Path) -> None:
        """Loads all resources. Raises BadRecords."""
        self._folder = folder
        self.lock = threading.RLock()
        folder.mkdir(parents=True, exist_ok=True)
        for partial in folder.glob(f"*{_PARTIAL}"):
            partial.unlink()  # a process was killed before it replaced the file
        self._records = {record.id.key: record for record in records(folder)}

    def get(self, resource: ResourceId) -> Record | None:
        with self.lock:
            found = self._records.get(resource.key)
            return _copy(found) if found else None

    def all(self, resource_type: str = "") -> list[Record]:
        with self.lock:
            found = [_copy(record) for _, record in sorted(self._records.items())]
        wanted = resource_type.lower()
        return [record for record in found if not wanted or record.id.type.lower() == wanted]

    def within(self, parent: ResourceId) -> list[Record]:
        return [record for record in self.all() if parent.holds(record.id)]

    def put(self, record: Record) -> None:
        """Writes a resource. After a kill, either the old or the new version exists."""
        with self.lock:
            file = self.file(record.id)
            partial = file.with_suffix(_PARTIAL)
            data = asdict(record) | {"id": record.id.text}
            with partial.open("w") as stream:
                json.dump(data, stream, indent=1, sort_keys=True)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(file)
            self._records[record.id.key] = _copy(record)

    def remove(self, resource: ResourceId) -> None:
        with self.lock:
            self.file(resource).unlink(missing_ok=True)
            self._records.pop(resource.key, None)

    def file(self, resource: ResourceId) -> Path:
        kind = resource.type.rpartition("/")[2]
        readable = re.sub(r"[^\w-]", "_", resource.name)[:60]
        digest = hashlib.sha256(resource.key.encode()).hexdigest()[:12]
        return self._folder / f"{kind}-{readable}-{digest}.json"


def records(folder: Path) -> list[Record]:
    """Returns a folder's resources. Processes other than the server can call this. Raises BadRecords."""
    found, bad = [], {}
    for file in sorted(folder.glob("*.json")):
        try:
            found.append(_read(file.read_bytes()))
        except FileNotFoundError:
            continue  # was just deleted
        except ValueError as error:
            bad[file] = str(error)
    if bad:
        raise BadRecords(bad)
    return found


def _read(content: bytes) -> Record:
    try:
        read = _OnDisk.model_validate_json(content)
    except ValidationError as error:
        problems = (": ".join((*map(str, each["loc"]), each["msg"])) for each in error.errors())
        raise ValueError(", ".join(problems)) from error
    return Record(**(read.model_dump() | {"id": parse_id(read.id)}))


def _copy(record: Record) -> Record:
    return Record(record.id, *json.loads(json.dumps([record.body, record.error, record.correlation, record.facts])))
