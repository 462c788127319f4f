"""Changes for which drivers have to be rolled are told, each with who rolls them; all others are not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import pulumi
import pytest

from config.schema.operators import DriverUpgrades
from operators import gpu_operator, network_operator
from operators._lib.drivers import told
from operators._lib.release import merge
from operators.gpu_operator import driver_made_of
from operators.network_operator import ofed_made_of, operator_made_of, policy_spec
from operators.network_operator.settings import NetworkOperatorSettings
from tests.support.mocks import deploy

Inputs = dict[str, Any]
MadeOf = Callable[[Mapping[str, Any]], Mapping[str, Any]]
OTHER_OFED = NetworkOperatorSettings(ofed_version="doca3.2.0-25.10-1.2.8.0-2")


def policy(settings: NetworkOperatorSettings | None = None, upgrades: DriverUpgrades = "manual", **spec: Any) -> Inputs:
    return {"spec": policy_spec(settings or NetworkOperatorSettings(), upgrades, None) | spec}


def gpu(upgrades: DriverUpgrades = "manual", version: str = "v26.7.0", **values: Any) -> Inputs:
    return {"version": version, "values": merge(gpu_operator.values(upgrades, rdma=True, pools={}), values)}


def network(version: str = "26.4.1", **values: Any) -> Inputs:
    return {"version": version, "values": merge(network_operator.values(), values)}


def said(
    made_of: MadeOf,
    old: Inputs,
    new: Inputs,
    monkeypatch: pytest.MonkeyPatch,
    upgrades: DriverUpgrades = "manual",
) -> list[str]:
    """The warnings of an update, as the engine asks for them in a preview."""
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", warnings.append)

    def update() -> None:
        hooks = told("the driver", made_of, upgrades).before_update
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
    ("made_of", "old", "new", "changed"),
    [
        (ofed_made_of, policy(), policy(OTHER_OFED), "version"),
        (ofed_made_of, policy(), policy(tolerations=[]), "tolerations"),
        (driver_made_of, gpu(), gpu(driver={"version": "590.48.01"}), "version"),
        (driver_made_of, gpu(), gpu(version="v26.10.0"), "version of the chart"),
        (driver_made_of, gpu(), gpu(gdrcopy={"enabled": True}), "gdrcopy"),
        (operator_made_of, network(), network("26.7.0"), "version of the chart"),
    ],
)
def test_what_is_in_the_template_of_a_driver_is_told(
    made_of: MadeOf, old: Inputs, new: Inputs, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (warning,) = said(made_of, old, new, monkeypatch)
    assert warning.startswith(f"the driver changes ({changed}): nodes keep an outdated one until you roll them")
    (warning,) = said(made_of, old, new, monkeypatch, "when-idle")
    assert "until the operator rolls them, one at a time" in warning


@pytest.mark.parametrize(
    ("made_of", "old", "new", "upgrades"),
    [
        (ofed_made_of, policy(), policy(NetworkOperatorSettings(rdma_resource="hcas")), "manual"),
        (ofed_made_of, policy(upgrades="when-idle"), policy(), "manual"),
        (driver_made_of, gpu(), gpu(devicePlugin={"enabled": False}), "manual"),
        (operator_made_of, network(), network(upgradeCRDs=False), "manual"),
        # Operators that begin to roll take what is outdated already.
        (ofed_made_of, policy(), policy(upgrades="when-idle"), "when-idle"),
        (driver_made_of, gpu(), gpu("when-idle"), "when-idle"),
    ],
)
def test_nothing_else_is_but_that_the_operators_begin_to_roll(
    made_of: MadeOf, old: Inputs, new: Inputs, upgrades: DriverUpgrades, monkeypatch: pytest.MonkeyPatch
) -> None:
    warning = "the driver changes (driverUpgrades): nodes keep an outdated one until the operator"
    found = said(made_of, old, new, monkeypatch, upgrades)
    assert [each[: len(warning)] for each in found] == ([warning] if upgrades == "when-idle" else [])


def test_values_that_may_be_secret_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (warning,) = said(driver_made_of, gpu(), gpu(driver={"licensingConfig": "hidden"}), monkeypatch)
    assert "licensingConfig" in warning
    assert "hidden" not in warning
