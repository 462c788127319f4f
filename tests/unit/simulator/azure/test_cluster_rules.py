"""What AKS refuses of a cluster's identity, login and address ranges, and what it takes."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.ids import parse_id
from simulator.azure.types.managed_cluster.rules import kubelet_identity
from tests.support.arm import CLUSTER, GROUP, Arm, cluster_body
from tests.support.networks import REGISTRY, REGISTRY_BODY, make

IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/aks"
OWN = {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}
OPERATOR, ROLE = "f1a07417-d97a-45cb-824c-7a7467783830", "00000000-0000-0000-0000-000000000001"
OVERLAY = {"networkPlugin": "azure", "networkPluginMode": "overlay"}


@pytest.fixture
def group(arm: Arm) -> Arm:
    """A subscription with an empty resource group."""
    assert arm.put(GROUP, {"location": "eastus"}).status_code == 201
    return arm


def refused(arm: Arm, body: dict[str, Any]) -> tuple[str, str, str | None]:
    """Code, message and target; nothing is left behind."""
    answer = arm.put(CLUSTER, body)
    assert answer.status_code == 400, answer.text
    assert arm.call("GET", CLUSTER).status_code == 404
    error = answer.json()["error"]
    return error["code"], error["message"], error.get("target")


# -- who may reach it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["home", "137.117.106.90/29", "1.2.3.4/33"])
def test_authorized_ranges_are_addresses_or_cidr(group: Arm, bad: str) -> None:
    body = cluster_body(apiServerAccessProfile={"authorizedIPRanges": ["137.117.106.88/29", "8.8.8.8", bad]})
    code, message, _ = refused(group, body)
    assert code == "InvalidParameter"
    assert message == f"authorizedIPRanges has what is no IPv4 address or CIDR range: {bad}."


def test_authorized_ranges_are_200_at_most(group: Arm) -> None:
    ranges = [f"8.8.{number}.8/32" for number in range(201)]
    _, message, _ = refused(group, cluster_body(apiServerAccessProfile={"authorizedIPRanges": ranges}))
    assert "the most is 200" in message


# -- when its nodes are patched ----------------------------------------------------------------------------------------


def window(**fields: Any) -> dict[str, Any]:
    sundays = {"weekly": {"dayOfWeek": "Sunday", "intervalWeeks": 1}}
    given = {"durationHours": 4, "schedule": sundays, "startTime": "02:00", **fields}
    return {"properties": {"maintenanceWindow": given}}


NODE_OS = f"{CLUSTER}/maintenanceConfigurations/aksManagedNodeOSUpgradeSchedule"


def test_a_maintenance_window_is_kept_and_goes_with_its_cluster(cluster: Arm) -> None:
    assert cluster.put(NODE_OS, window()).status_code == 201
    assert cluster.get(NODE_OS)["properties"] == window()["properties"]
    cluster.call("DELETE", CLUSTER)
    cluster.done()
    assert cluster.call("GET", NODE_OS).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "part"),
    [
        (NODE_OS, window(durationHours=2), "the least is 4"),
        (NODE_OS, window(schedule={"weekly": {"dayOfWeek": "Caturday", "intervalWeeks": 1}}), "Caturday"),
        (NODE_OS, window(startTime="2am"), "A time is hours and minutes"),
        (f"{CLUSTER}/maintenanceConfigurations/mine", window(), "must be named one of default, aksManaged"),
    ],
)
def test_a_window_that_azure_does_not_have_is_refused(cluster: Arm, path: str, body: dict[str, Any], part: str) -> None:
    status, code, message = cluster.refusal(cluster.put(path, body))
    assert (status, code) == (400, "InvalidParameter")
    assert part in message


# -- identity and login ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("identity", [None, {}, {"type": "None"}])
def test_a_cluster_needs_an_identity_or_a_service_principal(group: Arm, identity: dict[str, Any] | None) -> None:
    body = cluster_body() | {"identity": identity}
    wanted = "Required parameter servicePrincipalProfile is missing (null)."
    assert refused(group, body) == ("InvalidParameter", wanted, "servicePrincipalProfile")
    principal = cluster_body(servicePrincipalProfile={"clientId": "a", "secret": "b"}) | {"identity": identity}
    assert group.put(CLUSTER, principal).status_code == 201


def test_an_update_may_leave_the_identity_out(cluster: Arm) -> None:
    assert cluster.put(CLUSTER, cluster_body() | {"identity": None}).status_code == 200


@pytest.mark.parametrize(
    ("identity", "code", "part"),
    [
        ({"type": "UserAssigned"}, "MissingIdentityIds", "must not be null or empty for 'UserAssigned'"),
        (
            {"type": "UserAssigned", "userAssignedIdentities": {}},
            "MissingIdentityIds",
            "must not be null or empty for 'UserAssigned'",
        ),
        (
            {"type": "SystemAssigned", "userAssignedIdentities": {IDENTITY: {}}},
            "FailedIdentityOperation",
            "a non-UserAssigned identity type should not contain: userAssignedIdentities",
        ),
        (
            {"type": "SystemAssigned", "userAssignedIdentities": {}},
            "FailedIdentityOperation",
            f"Identity operation for resource '{CLUSTER}' failed with error 'Failed to perform",
        ),
        ({"userAssignedIdentities": {IDENTITY: {}}}, "FailedIdentityOperation", "non-UserAssigned"),
    ],
)
def test_identities_of_ones_own_go_with_their_type(group: Arm, identity: dict[str, Any], code: str, part: str) -> None:
    found, message, _ = refused(group, cluster_body() | {"identity": identity})
    assert found == code
    assert part in message


def test_a_cluster_with_an_identity_of_ones_own(group: Arm) -> None:
    asked = cluster_body() | {"identity": OWN}
    code, message, _ = refused(group, asked)
    assert (code, f"Resource '{IDENTITY}' was not found." in message) == ("FailedIdentityOperation", True)
    assert group.put(IDENTITY, {"location": "eastus"}).status_code == 201
    assert group.put(CLUSTER, asked).status_code == 201
    group.done()
    gone = {"type": "UserAssigned", "userAssignedIdentities": {f"{IDENTITY}-gone": {}}}
    assert group.refusal(group.put(CLUSTER, cluster_body() | {"identity": gone}))[1] == "FailedIdentityOperation"


@pytest.mark.parametrize(
    ("named", "code", "part"),
    [
        (
            "garbage",
            "LinkedInvalidPropertyId",
            "Property id 'garbage' at path '' is invalid. Expect fully qualified resource Id",
        ),
        (GROUP, "FailedIdentityOperation", f"Resource '{GROUP}' was not found."),
        (REGISTRY, "FailedIdentityOperation", f"Resource '{REGISTRY}' was not found."),
    ],
)
def test_an_identity_of_a_cluster_is_an_identity(group: Arm, named: str, code: str, part: str) -> None:
    make(group, REGISTRY, REGISTRY_BODY)
    identity = {"type": "UserAssigned", "userAssignedIdentities": {named: {}}}
    found, message, _ = refused(group, cluster_body() | {"identity": identity})
    assert (found, part in message) == (code, True), message


def test_nodes_get_an_identity_that_the_clusters_may_assign(group: Arm) -> None:
    """Codes and the role: AKS's page "Use a managed identity" and reports of refusals."""
    nodes = f"{IDENTITY}-nodes"
    kubelet = {"identityProfile": {"kubeletidentity": {"resourceId": nodes}}}
    assert refused(group, cluster_body(**kubelet))[0] == "CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster"
    asked = cluster_body(**kubelet) | {"identity": OWN}
    mine = group.put(IDENTITY, {"location": "eastus"}).json()["properties"]["principalId"]
    role = {"principalId": mine, "roleDefinitionId": f"x/{OPERATOR}"}
    for path, body in (
        (f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/{ROLE}", {"properties": role}),
        (nodes, {"location": "eastus"}),
    ):
        assert refused(group, asked)[0] == "CustomKubeletIdentityMissingPermissionError"
        assert group.put(path, body).status_code == 201
    told = {"objectId": mine, "clientId": mine}  # the caller's word does not count
    asked["properties"]["identityProfile"]["kubeletidentity"] |= told
    made = make(group, CLUSTER, asked)["properties"]["identityProfile"]["kubeletidentity"]
    ids = group.get(nodes)["properties"]
    assert made == {"resourceId": nodes, "clientId": ids["clientId"], "objectId": ids["principalId"]}
    world = group.server.world
    record = world.store.get(parse_id(CLUSTER))
    assert record is not None
    assert kubelet_identity(record) == ids["principalId"], "by which the nodes pull images"


def test_nodes_may_keep_the_identity_that_aks_makes(cluster: Arm) -> None:
    shown = cluster.get(CLUSTER)["properties"]["identityProfile"]
    told = {"kubeletidentity": shown["kubeletidentity"] | {"objectId": "else"}}
    assert make(cluster, CLUSTER, cluster_body(identityProfile=told))["properties"]["identityProfile"] == shown


@pytest.mark.parametrize(
    "profile",
    [
        {"kubeletidentity": {}},
        {"kubeletidentity": {"resourceId": ""}},
        {"kubeletidentity": {"resourceId": "garbage"}},
        {"kubeletidentity": {"resourceId": GROUP}},
        {"kubeletidentity": {"resourceId": REGISTRY}},
        {"other": {"resourceId": IDENTITY}},
        {"kubeletidentity": {"resourceId": IDENTITY}, "other": {"resourceId": IDENTITY}},
    ],
)
def test_the_identity_of_nodes_is_an_identity(group: Arm, profile: dict[str, Any]) -> None:
    make(group, IDENTITY, {"location": "eastus"})
    code, _, target = refused(group, cluster_body(identityProfile=profile) | {"identity": OWN})
    assert (code, target) == ("CustomKubeletIdentityPropertyError", "properties.identityProfile")


def test_the_identity_of_nodes_in_their_own_group_is_there(group: Arm) -> None:
    make(group, IDENTITY, {"location": "eastus"})
    missing = IDENTITY.replace(GROUP, GROUP.replace("/rg", "/MC_rg_aks_eastus"))
    asked = cluster_body(identityProfile={"kubeletidentity": {"resourceId": f"{missing}-none"}}) | {"identity": OWN}
    assert refused(group, asked)[0] == "CustomKubeletIdentityMissingPermissionError"


def test_a_cluster_has_one_identity_of_ones_own(group: Arm) -> None:
    names = (IDENTITY, f"{IDENTITY}-two")
    for name in names:
        make(group, name, {"location": "eastus"})
    identity = {"type": "UserAssigned", "userAssignedIdentities": {name: {} for name in names}}
    _, message, _ = refused(group, cluster_body() | {"identity": identity})
    assert message == (
        "The count of user assigned identity specified in identity.userAssignedIdentities is 2, while expected value "
        "is 1."
    )


@pytest.mark.parametrize("profile", [None, {}, {"managed": False}])
def test_without_entra_local_accounts_stay(group: Arm, profile: dict[str, Any] | None) -> None:
    body = cluster_body(disableLocalAccounts=True, aadProfile=profile)
    code, message, target = refused(group, body)
    assert (code, target) == ("BadRequest", "properties.disableLocalAccounts")
    assert message == (
        "Since kubernetes version 1.25, disableLocalAccounts can only be set on Azure AD integration enabled cluster. "
        "Please integrate your cluster with AAD."
    )


def test_an_update_that_leaves_entra_out_keeps_it(group: Arm) -> None:
    assert group.put(CLUSTER, cluster_body(aadProfile={"managed": True})).status_code == 201
    group.done()
    assert group.put(CLUSTER, cluster_body(disableLocalAccounts=True)).status_code == 200
    group.done()
    assert group.get(CLUSTER)["properties"]["aadProfile"]["managed"] is True


# -- address ranges ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "code", "part", "target"),
    [
        (
            {"serviceCidr": "10.200.0.0/16"},
            "DnsServiceIpOutOfServiceCidr",
            "The DNS service IP 10.0.0.10 is out of the range defined by service CIDR 10.200.0.0/16.",
            "dnsServiceIP",
        ),
        ({"dnsServiceIP": "10.1.0.10"}, "DnsServiceIpOutOfServiceCidr", "service CIDR 10.0.0.0/16", "dnsServiceIP"),
        (
            {"serviceCidr": "10.2.0.0/24", "dnsServiceIP": "10.2.1.10"},
            "DnsServiceIpOutOfServiceCidr",
            "10.2.1.10 is out",
            "dnsServiceIP",
        ),
        (
            {"serviceCidrs": ["10.2.0.0/24", "fd00::/112"], "dnsServiceIP": "fd00::a"},
            "DnsServiceIpOutOfServiceCidr",
            "fd00::a is out",
            "dnsServiceIP",
        ),
        ({"dnsServiceIP": "10.0.0.1"}, "DnsServiceIpConflicting", "the first IP address", "dnsServiceIP"),
        ({"dnsServiceIP": "10.0.0.0"}, "DnsServiceIpConflicting", "the first IP address", "dnsServiceIP"),
        ({"dnsServiceIP": "10.0.0.x"}, "DnsServiceIpParseError", "not a valid IP address", "dnsServiceIP"),
        ({"serviceCidr": "10.0.0.0/11"}, "InvalidParameter", "10.0.0.0/11, the largest is a /12", "serviceCIDR"),
        ({"serviceCidrs": ["10.0.0.0/16", "fd00::/107"]}, "InvalidParameter", "largest is a /108", "serviceCIDR"),
        ({"serviceCidr": "10.0.0.0/33"}, "CidrStringParseError", "Cidr is invalid", "serviceCIDR"),
        (OVERLAY | {"podCidr": "ten"}, "CidrStringParseError", "Cidr is invalid", "podCIDR"),
        (
            OVERLAY | {"podCidr": "10.0.0.0/8"},
            "PodCidrOverlapServiceCidr",
            "pod CIDR 10.0.0.0/8 is conflicted with the service CIDR 10.0.0.0/16",
            "podCIDR",
        ),
        (
            OVERLAY | {"serviceCidr": "10.240.0.0/12", "dnsServiceIP": "10.240.0.10"},
            "PodCidrOverlapServiceCidr",
            "pod CIDR 10.244.0.0/16",
            "podCIDR",
        ),
    ],
)
def test_addresses_that_do_not_fit(group: Arm, network: dict[str, Any], code: str, part: str, target: str) -> None:
    found, message, where = refused(group, cluster_body(networkProfile=network))
    assert (found, where) == (code, f"networkProfile.{target}")
    assert part in message


@pytest.mark.parametrize(
    "network",
    [
        {"dnsServiceIP": "10.0.0.2"},
        {"serviceCidr": "10.0.0.0/12"},
        {"serviceCidr": "10.2.0.0/24", "dnsServiceIP": "10.2.0.10"},
        {"serviceCidrs": ["10.2.0.0/24", "fd00::/108"], "dnsServiceIP": "10.2.0.10"},
        OVERLAY | {"podCidr": "10.244.3.1/16"},
        OVERLAY | {"podCidrs": ["10.1.0.0/16", "fd00:1::/64"]},
    ],
)
def test_addresses_that_fit(group: Arm, network: dict[str, Any]) -> None:
    assert group.put(CLUSTER, cluster_body(networkProfile=network)).status_code == 201


def test_all_problems_of_addresses_are_told_at_once(group: Arm) -> None:
    network = OVERLAY | {"serviceCidr": "10.240.0.0/11"}
    error = group.put(CLUSTER, cluster_body(networkProfile=network)).json()["error"]
    assert [detail["code"] for detail in error["details"]] == [
        "InvalidParameter",
        "PodCidrOverlapServiceCidr",
        "DnsServiceIpOutOfServiceCidr",
    ]


# -- what an update that leaves the network out keeps; the way out -----------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [{"networkPlugin": "kubenet"}, {"networkPlugin": "azure"}, OVERLAY, {"networkPlugin": "none"}],
    ids=["kubenet", "flat", "overlay", "none"],
)
def test_a_plugin_stays(group: Arm, network: dict[str, str]) -> None:
    assert group.put(CLUSTER, cluster_body(networkProfile=network)).status_code == 201
    group.done()
    assert group.put(CLUSTER, cluster_body()).status_code == 200
    shown = group.get(CLUSTER)["properties"]["networkProfile"]
    assert {name: shown.get(name) for name in OVERLAY} == dict.fromkeys(OVERLAY) | network


def test_a_load_balancer_has_the_addresses_that_are_asked_for(group: Arm) -> None:
    asked = {"loadBalancerProfile": {"managedOutboundIPs": {"count": 3}}}
    assert group.put(CLUSTER, cluster_body(networkProfile=asked)).status_code == 201
    balancer = group.get(CLUSTER)["properties"]["networkProfile"]["loadBalancerProfile"]
    assert len({address["id"] for address in balancer["effectiveOutboundIPs"]}) == 3


def test_with_another_way_out_there_is_no_load_balancer(group: Arm) -> None:
    assert group.put(CLUSTER, cluster_body(networkProfile={"outboundType": "none"})).status_code == 201
    assert "loadBalancerProfile" not in group.get(CLUSTER)["properties"]["networkProfile"]


def test_a_cluster_takes_back_what_it_shows(cluster: Arm) -> None:
    """As the Azure CLI changes one: it reads it, and puts it with the change."""
    shown = cluster.get(CLUSTER)
    assert cluster.put(CLUSTER, shown).status_code == 200
    cluster.done()
    assert cluster.get(CLUSTER) == shown
