from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import pulumi
import pytest

from config.schema.operators import DriverUpgrades
from operators import gpu_operator, network_operator
from operators._lib.drivers import change_hook
from operators._lib.release import merge
from operators.gpu_operator import driver_template_inputs
from operators.network_operator import ofed_template_inputs, operator_template_inputs, policy_spec
from operators.network_operator.settings import NetworkOperatorSettings
from tests.support.mocks import deploy

Inputs = dict[str, Any]
Select = Callable[[Mapping[str, Any]], Mapping[str, Any]]
OTHER_OFED = NetworkOperatorSettings(ofed_version="doca3.2.0-25.10-1.2.8.0-2")


def policy(settings: NetworkOperatorSettings | None = None, upgrades: DriverUpgrades = "manual", **spec: Any) -> Inputs:
    return {"spec": policy_spec(settings or NetworkOperatorSettings(), upgrades, None) | spec}


def gpu(upgrades: DriverUpgrades = "manual", version: str = "v26.7.0", **values: Any) -> Inputs:
    return {"version": version, "values": merge(gpu_operator.values(upgrades, rdma=True, pools={}), values)}


def network(version: str = "26.4.1", **values: Any) -> Inputs:
    return {"version": version, "values": merge(network_operator.values(), values)}


def logged(
    template_inputs: Select,
    old: Inputs,
    new: Inputs,
    monkeypatch: pytest.MonkeyPatch,
    upgrades: DriverUpgrades = "manual",
) -> list[str]:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", warnings.append)

    def update() -> None:
        hooks = change_hook("the driver", template_inputs, upgrades).before_update
        assert hooks
        hook = hooks[0]
        assert isinstance(hook, pulumi.ResourceHook)
        assert hook.opts
        assert hook.opts.on_dry_run
        args = pulumi.ResourceHookArgs(urn="", id="", name="", type="", old_inputs=old, new_inputs=new)
        assert not inspect.isawaitable(cast(object, hook(args)))

    deploy(update)
    return warnings


@pytest.mark.parametrize(
    ("template_inputs", "old", "new", "changed"),
    [
        (ofed_template_inputs, policy(), policy(OTHER_OFED), "version"),
        (ofed_template_inputs, policy(), policy(tolerations=[]), "tolerations"),
        (driver_template_inputs, gpu(), gpu(driver={"version": "590.48.01"}), "version"),
        (driver_template_inputs, gpu(), gpu(version="v26.10.0"), "version of the chart"),
        (driver_template_inputs, gpu(), gpu(gdrcopy={"enabled": True}), "gdrcopy"),
        (operator_template_inputs, network(), network("26.7.0"), "version of the chart"),
    ],
)
def test_warns_of_changes_of_a_drivers_template(
    template_inputs: Select, old: Inputs, new: Inputs, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (warning,) = logged(template_inputs, old, new, monkeypatch)
    assert warning.startswith(f"the driver changes ({changed}): nodes keep the outdated driver until you")
    (warning,) = logged(template_inputs, old, new, monkeypatch, "when-idle")
    assert "until the operator rolls out the new driver" in warning


@pytest.mark.parametrize(
    ("template_inputs", "old", "new", "upgrades"),
    [
        (ofed_template_inputs, policy(), policy(NetworkOperatorSettings(rdma_resource="hcas")), "manual"),
        (ofed_template_inputs, policy(upgrades="when-idle"), policy(), "manual"),
        (driver_template_inputs, gpu(), gpu(devicePlugin={"enabled": False}), "manual"),
        (operator_template_inputs, network(), network(upgradeCRDs=False), "manual"),
        # These operators also roll out drivers that are already outdated.
        (ofed_template_inputs, policy(), policy(upgrades="when-idle"), "when-idle"),
        (driver_template_inputs, gpu(), gpu("when-idle"), "when-idle"),
    ],
)
def test_other_changes_only_warn_if_a_rollout_begins(
    template_inputs: Select, old: Inputs, new: Inputs, upgrades: DriverUpgrades, monkeypatch: pytest.MonkeyPatch
) -> None:
    warning = "the driver changes (driverUpgrades): nodes keep the outdated driver until the operator"
    found = logged(template_inputs, old, new, monkeypatch, upgrades)
    assert [each[: len(warning)] for each in found] == ([warning] if upgrades == "when-idle" else [])


def test_does_not_log_changed_values(monkeypatch: pytest.MonkeyPatch) -> None:
    (warning,) = logged(driver_template_inputs, gpu(), gpu(driver={"licensingConfig": "hidden"}), monkeypatch)
    assert "licensingConfig" in warning
    assert "hidden" not in warning
