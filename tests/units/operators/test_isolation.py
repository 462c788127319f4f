"""What reaches the pods of a team, where a policy engine enforces it."""

from __future__ import annotations

from typing import Any

from config.schema.network import POD_RANGE
from operators.kuberay import OPERATOR as KUBERAY
from operators.kueue import isolation
from operators.monitoring import OPERATOR as MONITORING

SPEC = isolation.policy(POD_RANGE)


def namespaces(peers: list[dict[str, Any]]) -> set[str]:
    """The namespaces that are let in whole; the team's own is `own`."""
    found = [
        peer.get("namespaceSelector", {}).get("matchLabels", {"kubernetes.io/metadata.name": "own"}) for peer in peers
    ]
    return {labels["kubernetes.io/metadata.name"] for labels in found}


def test_only_the_team_and_what_serves_its_jobs_reaches_its_pods() -> None:
    assert SPEC["podSelector"] == {}
    assert "Ingress" in SPEC["policyTypes"]
    (rule,) = SPEC["ingress"]
    assert namespaces(rule["from"]) == {"own", KUBERAY.namespace, MONITORING.namespace}


def test_its_pods_reach_each_other_dns_and_other_addresses() -> None:
    """Among them is 169.254.169.254, which checks of nodes before a team's jobs ask for the VM size."""
    own, dns, outside = SPEC["egress"]
    assert "Egress" in SPEC["policyTypes"]
    assert own == {"to": [{"podSelector": {}}]}
    assert namespaces(dns["to"]) == {"kube-system"}
    assert {(each["protocol"], each["port"]) for each in dns["ports"]} == {("UDP", 53), ("TCP", 53)}
    assert outside == {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [POD_RANGE]}}]}
