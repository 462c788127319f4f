"""The operators' interface to the settings, which each package in `operators/` implements.

`config` imports neither `operators` nor `workloads`; the program passes them to the loader.
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
Scheduler = Literal["volcano", "scheduler-plugins-scheduler"]
Capability = Literal["GPUs", "InfiniBand", "node labels", "scheduler", "queues", "NVMe scratch"]
NVIDIA_NAMESPACE = "nvidia-operator"
NODE_TOOLS_NAMESPACE = "node-tools"
MAX_WARM_UP = 24 * 60
"""The longest warm-up in minutes, AppWrapper's limit."""
MONITORING = "kube-prometheus-stack"
"""The operator with the CRDs for metrics. If it is installed, later operators create objects of these kinds."""
NODE_HEALTH = "node-health"
MLBATCH_NAMESPACE = "mlbatch-system"


class OperatorSettings(Model):
    """The settings of any operator."""

    enabled: bool = True
    """Whether the stack installs it."""

    @property
    def shared_class(self) -> str | None:
        return None

    @property
    def failure_effect(self) -> str | None:
        """The taint effect on nodes that fail a check; None if the operator has no check that may taint nodes."""
        return None

    @property
    def preempts(self) -> bool:
        """Whether the operator preempts pods with a lower priority class, as Kubernetes also does."""
        return False

    @property
    def gpu_driver_minutes(self) -> int:
        return 0

    @property
    def rdma_driver_minutes(self) -> int:
        return 0


class QueuedOperatorSettings(OperatorSettings):
    """The settings of an operator for queued jobs: off by default, as are the queues."""

    enabled: bool = False
    """Whether the stack installs it."""


class ChartSettings(OperatorSettings):
    """The settings of an operator that is a Helm release; `values` override the program's own."""

    values: dict[str, Any] = {}
    """Helm values, merged last."""


Own = TypeVar("Own", bound=OperatorSettings)


class OperatorSpec(Protocol[Own]):
    """The interface of one operator to the settings, with read-only attributes."""

    @property
    def name(self) -> str:
        """The hyphenated name of its release, and of its chart in `versions.yaml`. Stack files use camelCase."""

    @property
    def title(self) -> str:
        """The display name."""

    @property
    def summary(self) -> str:
        """The operator's purpose and place, for its setting `enabled` in docs/configuration.md."""

    @property
    def has_chart(self) -> bool:
        return True

    @property
    def namespace(self) -> str:
        """The namespace that the operator creates or shares."""

    @property
    def settings(self) -> type[Own]:
        """The model of its settings; every setting has a default."""

    @property
    def needs(self) -> Mapping[Capability, str]:
        """The capabilities that it needs, each with the reason (the end of a sentence)."""
        return {}

    @property
    def needed_values(self) -> Sequence[tuple[str, ...]]:
        """Paths of chart values that workloads need enabled."""
        return ()

    @property
    def is_for_gpu_pools(self) -> bool:
        return False

    def provides(self, settings: Own) -> Mapping[Capability, str]:
        """Returns the capabilities that it provides, each with the name by which pods request it."""
        return {}

    def is_wanted(self, stack: StackFile) -> bool:
        return stack.operators.of(self).enabled and (bool(stack.gpu_pools()) or not self.is_for_gpu_pools)

    def problems(self, installation: Installation) -> Iterable[Problem]:
        """Returns errors of its settings in combination with those of other operators."""
        return ()


OperatorCatalogue = Mapping[str, OperatorSpec[Any]]


def key_of(name: str) -> str:
    return to_camel(name.replace("-", "_"))


def field_of(name: str) -> str:
    return name.replace("-", "_")


class Operators(Model):
    """The cluster's operators. config/schema/inventory.py adds a field for each."""

    driver_upgrades: DriverUpgrades = "manual"
    """Upgrades of OFED and the GPU driver on running nodes: `manual` or `when-idle`. With `when-idle`, NVIDIA's
    operators upgrade one node at a time, after all its pods have ended, except pods of DaemonSets.
    """
    scheduler: Scheduler = VOLCANO
    """The only scheduler of pods on GPU nodes: `volcano`, or `scheduler-plugins-scheduler`, which is Kubernetes'
    scheduler with Coscheduling and does not run MPI jobs.
    """

    warm_up_minutes: Annotated[int, Field(ge=1, le=MAX_WARM_UP), PLAIN_DIGITS] = 30
    """Minutes until the pods of a team's job must be ready, including image pulls. After that, AppWrapper retries the
    job; ten minutes later, Kueue takes back the quota.
    """

    def of(self, operator: OperatorSpec[Own]) -> Own:
        found: Own | None = getattr(self, field_of(operator.name), None)
        return operator.settings() if found is None else found

    def _enabled(self) -> Iterator[OperatorSettings]:
        return (each for _, each in self if isinstance(each, OperatorSettings) and each.enabled)

    @property
    def shared_class(self) -> str | None:
        return next(filter(None, (each.shared_class for each in self._enabled())), None)

    @property
    def preempts(self) -> bool:
        return self.scheduler != VOLCANO or any(each.preempts for each in self._enabled())

    @property
    def failure_effect(self) -> str | None:
        """The taint effect on nodes that fail a check; None if no check may taint nodes."""
        return next(filter(None, (each.failure_effect for each in self._enabled())), None)

    def driver_minutes(self, *, infiniband: bool) -> int:
        """Returns the maximum minutes until a node has built its drivers, one after the other."""
        return sum(each.gpu_driver_minutes + infiniband * each.rdma_driver_minutes for each in self._enabled())


@dataclass(frozen=True)
class Brought:
    """A capability of a stack's cluster."""

    by: OperatorSpec[Any]
    enabled: bool
    name: str
    """The name by which pods request it."""


@dataclass(frozen=True)
class Installation:
    """The operators, and the stack with their settings."""

    stack: StackFile
    operators: OperatorCatalogue

    def enabled(self) -> Iterator[OperatorSpec[Any]]:
        return (each for each in self.operators.values() if self.stack.operators.of(each).enabled)

    def brought(self, capability: Capability) -> Brought:
        """Returns the capability and the operator that provides it (for `scheduler`, the chosen one). Raises
        LookupError if no operator provides it.
        """
        name = self.stack.operators.scheduler if capability == "scheduler" else None
        for each in self.operators.values():
            settings = self.stack.operators.of(each)
            found = each.provides(settings).get(capability)
            if found is not None and name in (None, found):
                return Brought(each, settings.enabled, found)
        raise LookupError(capability)

    def values(self, operator: OperatorSpec[Any]) -> Mapping[str, Any]:
        """Returns the user's values for an operator's chart."""
        settings = self.stack.operators.of(operator)
        return settings.values if isinstance(settings, ChartSettings) else {}

    def value(self, operator: OperatorSpec[Any], *path: str) -> object:
        """Returns a user's value for an operator's chart, or None."""
        found: object = self.values(operator)
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        return found
