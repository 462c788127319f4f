"""ARM resource ids and request paths. They are case-insensitive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

GROUP_TYPE = "Microsoft.Resources/resourceGroups"


@dataclass(frozen=True, eq=False)
class ResourceId:
    """A resource's id.

    `scope` is the text before the last `/providers/`. For a resource group, it is the subscription.
    """

    scope: str
    type: str
    names: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        if self.type == GROUP_TYPE:
            return f"{self.scope}/resourceGroups/{self.name}"
        namespace, *kinds = self.type.split("/")
        pairs = "/".join(f"{kind}/{name}" for kind, name in zip(kinds, self.names, strict=True))
        return f"{self.scope}/providers/{namespace}/{pairs}"

    @cached_property
    def key(self) -> str:
        return self.text.lower()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceId) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def subscription(self) -> str:
        return self.scope.split("/")[2] if self.scope.count("/") > 1 else ""

    @property
    def group(self) -> str | None:
        """The group's name, or None if the resource is a group or not in a group."""
        parts = self.scope.split("/")
        return parts[4] if len(parts) > 4 else None

    @property
    def group_id(self) -> ResourceId | None:
        if self.group is None:
            return None
        return ResourceId("/".join(self.scope.split("/")[:3]), GROUP_TYPE, (self.group,))

    @property
    def is_child(self) -> bool:
        return len(self.names) > 1

    @property
    def parent(self) -> ResourceId:
        """The parent of a child (a pool's cluster). Raises ValueError for other resources."""
        if not self.is_child:
            raise ValueError(f"{self.text} is not the id of a child resource")
        return ResourceId(self.scope, self.type.rpartition("/")[0], self.names[:-1])

    def child(self, kind: str, name: str) -> ResourceId:
        return ResourceId(self.scope, f"{self.type}/{kind}", (*self.names, name))

    def holds(self, other: ResourceId) -> bool:
        """Returns whether `other` is a child or extension of this resource, or a resource in this group."""
        return other.key.startswith(self.key + "/")


@dataclass(frozen=True)
class Path:
    """A request's path. `tail` is empty or names a collection or an action.

    For a resource provider, `type` is the namespace alone.
    """

    scope: str
    type: str
    names: tuple[str, ...]
    tail: str

    @property
    def id(self) -> ResourceId:
        return ResourceId(self.scope, self.type, self.names)


def parse(path: str) -> Path | None:
    """Splits a path. Returns None if it is not an ARM path."""
    parts = [part for part in path.split("/") if part]
    providers = [index for index, part in enumerate(parts) if part.lower() == "providers"]
    if not providers:
        return _parse_group(parts)
    at = providers[-1]
    if at + 2 > len(parts):
        return None
    namespace, rest = parts[at + 1], parts[at + 2 :]
    scope = "".join(f"/{part}" for part in _canonical_scope(parts[:at]))
    kinds, names = rest[0::2], rest[1::2]
    tail = kinds.pop() if len(kinds) > len(names) else ""
    return Path(scope, "/".join((namespace, *kinds)), tuple(names), tail)


def parse_id(text: str) -> ResourceId:
    """Parses a resource id. Raises ValueError for other text."""
    path = parse(text)
    if path is None or path.tail or not path.names:
        raise ValueError(f"{text!r} is not the id of a resource")
    return path.id


def _parse_group(parts: list[str]) -> Path | None:
    match [part.lower() for part in parts]:
        case ["subscriptions", _, "resourcegroups"]:
            return Path(f"/subscriptions/{parts[1]}", "Microsoft.Resources", (), "resourceGroups")
        case ["subscriptions", _, "resourcegroups", _]:
            return Path(f"/subscriptions/{parts[1]}", GROUP_TYPE, (parts[3],), "")
        case _:
            return None


def _canonical_scope(parts: list[str]) -> list[str]:
    fixed = {"subscriptions": "subscriptions", "resourcegroups": "resourceGroups"}
    return [fixed.get(part.lower(), part) if index % 2 == 0 else part for index, part in enumerate(parts)]
