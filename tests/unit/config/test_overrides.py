from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from config.schema.overrides import merge
from config.schema.workload import WorkloadOptions
from tests.support.case_files import case_table


@case_table(__file__, "merged")
def test_merges_overrides(base: dict[str, Any], over: dict[str, Any], merged: dict[str, Any]) -> None:
    before = repr(base)
    assert merge(base, over) == merged
    assert repr(base) == before


@case_table(__file__, "refused")
def test_rejects_invalid_overrides(overrides: dict[str, Any], where: list[str | int], what: str) -> None:
    with pytest.raises(ValidationError) as caught:
        WorkloadOptions(pod_overrides=overrides)
    ((fault,),) = (error["ctx"]["faults"] for error in caught.value.errors())
    assert list(fault.below) == where
    assert what in fault.what


def test_reports_all_faults_with_suggestions() -> None:
    container = {"name": "worker", "imagePullPolicy": "always"}
    spec = {"priorityClas": "low", "dnsPolicy": "clusterfirst", "restartPolicy": "Maybe", "containers": [container]}
    with pytest.raises(ValidationError) as caught:
        WorkloadOptions(pod_overrides={"spec": spec})
    (faults,) = (error["ctx"]["faults"] for error in caught.value.errors())
    assert {fault.below[1:]: (fault.what, fault.instead) for fault in faults} == {
        ("priorityClas",): ("is an unknown key", None),
        ("dnsPolicy",): ("is 'clusterfirst'; similar: ClusterFirst, ClusterFirstWithHostNet", "ClusterFirst"),
        ("restartPolicy",): ("is 'Maybe'", None),
        ("containers", 0, "imagePullPolicy"): ("is 'always'; similar: Always", "Always"),
    }


@case_table(__file__, "accepted")
def test_accepts_valid_overrides(spec: dict[str, Any]) -> None:
    assert WorkloadOptions(pod_overrides={"spec": spec}).pod_overrides == {"spec": spec}
