"""What the settings know of operators: `operators/` has a room for each, and the program hands them to the loader.

`config` never imports `operators`, as it never imports `workloads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

from pydantic import Field
from pydantic.alias_generators import to_camel

from config.data.scheduling import VOLCANO
from config.problems.errors import Problem
from config.schema.base import PLAIN_DIGITS, Model

if TYPE_CHECKING:
    from config.schema.models import StackFile

DriverUpgrades = Literal["manual", "when-idle"]
"""Who restarts drivers whose version or configuration has changed: nobody by itself, or NVIDIA's operators, node by
node, each once all pods of its node have ended.
"""
Scheduler = Literal["volcano", "scheduler-plugins-scheduler"]
"""What may place pods on GPU nodes, as pods name it."""
Capability = Literal["GPUs", "InfiniBand", "node labels", "scheduler", "queues", "NVMe scratch"]
"""What operators bring to a cluster, and workloads and other operators need."""
NVIDIA_NAMESPACE = "nvidia-operator"
"""Of what serves GPU nodes, from charts."""
NODE_TOOLS_NAMESPACE = "node-tools"
"""Of our own DaemonSets."""
MAX_WARM_UP = 24 * 60
"""Minutes; AppWrapper grants no job more."""
MONITORING = "kube-prometheus-stack"
"""The operator whose kinds others' metrics are found by: those that follow it have objects of these where it is."""
NODE_HEALTH = "node-health"
"""The operator by which checks may tell of their nodes."""
MLBATCH_NAMESPACE = "mlbatch-system"
"""Of what queues and runs the jobs of teams."""


class OperatorSettings(Model):
    """What a user may set of any operator."""

    enabled: bool = True
    """Whether the stack has it."""

    @property
    def shared_class(self) -> str | None:
        """The StorageClass of shared files that it brings."""
        return None

    @property
    def failure_effect(self) -> str | None:
        """Of the taint that a check may give a node that fails, where it lets checks do so."""
        return None

    @property
    def preempts(self) -> bool:
        """Whether it has pods of a higher priority class drive out those of a lower one, beside Kubernetes' own."""
        return False

    @property
    def gpu_driver_minutes(self) -> int:
        """How many minutes a GPU node builds its driver at most; 0 without one."""
        return 0

    @property
    def rdma_driver_minutes(self) -> int:
        """The same for its driver of nodes with InfiniBand."""
        return 0


class QueuedOperatorSettings(OperatorSettings):
    """Of one that runs jobs of queues: it is off unless it is asked for, as the queues are."""

    enabled: bool = False
    """Whether the stack has it."""


class ChartSettings(OperatorSettings):
    """Of one that is a Helm release; `values` are merged last, over the program's own."""

    values: dict[str, Any] = {}
    """Helm values, merged last."""


Own = TypeVar("Own", bound=OperatorSettings)


class OperatorSpec(Protocol[Own]):
    """One operator, as the settings see it. Attributes are read only."""

    @property
    def name(self) -> str:
        """Hyphenated: of its release, of its chart in `versions.yaml`; in stack files it is in camelCase."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def summary(self) -> str:
        """What it does and where, as docs/configuration.md has it beside its `enabled`."""

    @property
    def has_chart(self) -> bool:
        """Whether it is a Helm release, and not a manifest of ours."""
        return True

    @property
    def namespace(self) -> str:
        """That it makes for itself, or shares."""

    @property
    def settings(self) -> type[Own]:
        """Model of its settings; every one has a default."""

    @property
    def needs(self) -> Mapping[Capability, str]:
        """What another operator must bring, each with the reason, which ends a sentence that begins with this one."""
        return {}

    @property
    def whole(self) -> Sequence[tuple[str, ...]]:
        """Paths of chart values that workloads cannot do with off."""
        return ()

    @property
    def is_for_gpu_pools(self) -> bool:
        """Whether it has nothing to do in a stack without GPU pools."""
        return False

    def provides(self, settings: Own) -> Mapping[Capability, str]:
        """What it brings, each with the name by which pods ask for it."""
        return {}

    def is_wanted(self, stack: StackFile) -> bool:
        """Whether the stack installs it."""
        return stack.operators.of(self).enabled and (bool(stack.gpu_pools()) or not self.is_for_gpu_pools)

    def problems(self, installation: Installation) -> Iterable[Problem]:
        """What is wrong with its settings among the others."""
        return ()


OperatorCatalogue = Mapping[str, OperatorSpec[Any]]
"""By name."""


def key_of(name: str) -> str:
    """An operator's key in stack files, below `operators`."""
    return to_camel(name.replace("-", "_"))


def field_of(name: str) -> str:
    """The field that holds its settings."""
    return name.replace("-", "_")


class Operators(Model):
    """What is installed in the cluster. Each operator's field comes from its room (config/schema/inventory.py)."""

    driver_upgrades: DriverUpgrades = "manual"
    """Who brings another version of OFED or the GPU driver to nodes that run: you (`manual`), or with `when-idle`
    NVIDIA's operators, a node at a time, once all pods of it but those of DaemonSets have ended.
    """
    scheduler: Scheduler = VOLCANO
    """What alone places pods on GPU nodes, as pods name it: `volcano`, or `scheduler-plugins-scheduler`, which is
    Kubernetes' own with Coscheduling, and runs no MPI jobs.
    """

    warm_up_minutes: Annotated[int, Field(ge=1, le=MAX_WARM_UP), PLAIN_DIGITS] = 30
    """How long the pods of a team's job may take to be ready, their images pulled: AppWrapper then tries it anew, and
    Kueue takes the quota back ten minutes later.
    """

    def of(self, operator: OperatorSpec[Own]) -> Own:
        """Returns the settings of an operator. A model without its key has the defaults."""
        found: Own | None = getattr(self, field_of(operator.name), None)
        return operator.settings() if found is None else found

    def _enabled(self) -> Iterator[OperatorSettings]:
        return (each for _, each in self if isinstance(each, OperatorSettings) and each.enabled)

    @property
    def shared_class(self) -> str | None:
        """The StorageClass of shared files that one of them brings."""
        return next(filter(None, (each.shared_class for each in self._enabled())), None)

    @property
    def preempts(self) -> bool:
        """Whether pods of a higher priority class drive out those of a lower one on GPU nodes."""
        return self.scheduler != VOLCANO or any(each.preempts for each in self._enabled())

    @property
    def failure_effect(self) -> str | None:
        """Of the taint of a node whose check fails; None where no check may taint it."""
        return next(filter(None, (each.failure_effect for each in self._enabled())), None)

    def driver_minutes(self, *, infiniband: bool) -> int:
        """Returns how many minutes a node builds drivers at most, one after the other."""
        return sum(each.gpu_driver_minutes + infiniband * each.rdma_driver_minutes for each in self._enabled())


@dataclass(frozen=True)
class Brought:
    """A capability of a stack's cluster."""

    by: OperatorSpec[Any]
    enabled: bool
    name: str
    """By which pods ask for it."""


@dataclass(frozen=True)
class Installation:
    """What a stack asks for of the operators that there are."""

    stack: StackFile
    operators: OperatorCatalogue

    def enabled(self) -> Iterator[OperatorSpec[Any]]:
        """Those that are not off."""
        return (each for each in self.operators.values() if self.stack.operators.of(each).enabled)

    def brought(self, capability: Capability) -> Brought:
        """Who brings a capability; of schedulers the chosen one. Raises LookupError where none does, enabled or not."""
        name = self.stack.operators.scheduler if capability == "scheduler" else None
        for each in self.operators.values():
            settings = self.stack.operators.of(each)
            found = each.provides(settings).get(capability)
            if found is not None and name in (None, found):
                return Brought(each, settings.enabled, found)
        raise LookupError(capability)

    def values(self, operator: OperatorSpec[Any]) -> Mapping[str, Any]:
        """All that the user sets for its chart."""
        settings = self.stack.operators.of(operator)
        return settings.values if isinstance(settings, ChartSettings) else {}

    def value(self, operator: OperatorSpec[Any], *path: str) -> object:
        """A value that the user sets for an operator's chart; None without it."""
        found: object = self.values(operator)
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        return found
