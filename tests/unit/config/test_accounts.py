"""Several storage accounts: keys that are of none of them, and where problems of their containers are mended."""

from __future__ import annotations

from typing import Any

import workloads
from config.rules.advice import warnings
from tests.support.settings import load, problems
from tests.support.sizes import H100

KNOWN = workloads.find()
INPUT: dict[str, Any] = {"containers": {"olmo-data": {}}}
OUTPUT: dict[str, Any] = {"containers": {"olmo-checkpoints": {"permissions": "racwdlmp"}}}
BOTH: dict[str, Any] = {"input": INPUT, "output": OUTPUT}
OLMO: dict[str, Any] = {"workloads": "olmo", "workloadOptions": {"olmo": {"prepare": False}}}


def refused(storage: dict[str, Any], **keys: Any) -> dict[str, str]:
    """What is wrong, with what mends it."""
    found = problems({"vmSku": H100, "storage": storage, **keys}, known=KNOWN)
    return {str(problem).partition("\n")[0]: problem.fix for problem in found}


def test_keys_of_the_account_that_is_not_there_go_to_those_that_are() -> None:
    accounts = {"input": INPUT, "output": {**OUTPUT, "auth": "sas"}}
    assert refused({"auth": "identity", "accountName": "models", "accounts": accounts}) == {
        "storage.accountName is of the account with storage.containers, of which there are none": (
            "pulumi config rm --path storage.accountName"
        ),
        "storage.auth is of the account with storage.containers, of which there are none": (
            "pulumi config set --path storage.accounts.input.auth identity && pulumi config rm --path storage.auth"
        ),
    }


def test_what_holds_for_all_accounts_stays() -> None:
    assert load({"vmSku": H100, "storage": {"driver": "chart", "accounts": BOTH}}).storage.needs("chart")


def test_the_account_that_is_there_keeps_its_keys_beside_others() -> None:
    found = load({"vmSku": H100, "storage": {"auth": "identity", **INPUT, "accounts": {"output": OUTPUT}}}).storage
    assert [(each.key, each.settings.auth) for each in found.made_accounts()] == [("", "identity"), ("output", "sas")]


def test_a_workload_uses_containers_of_several_accounts() -> None:
    placements = load({"vmSku": H100, "storage": {"accounts": BOTH}, **OLMO}, known=KNOWN).placements
    assert placements["olmo"].options.containers == ("olmo-data", "olmo-checkpoints")


def test_a_container_is_mended_in_its_account() -> None:
    careless = {"input": INPUT, "output": {"containers": {"olmo-checkpoints": {}}}}
    (fix,) = refused({"accounts": careless}, **OLMO).values()
    path = 'storage.accounts.output.containers["olmo-checkpoints"].permissions'
    assert fix == f"pulumi config set --path '{path}' racwdlmp"


def test_one_that_is_missing_goes_where_others_are() -> None:
    (fix,) = refused({"accounts": {"output": OUTPUT}}, **OLMO).values()
    assert fix == "pulumi config set --path 'storage.accounts.output.containers[\"olmo-data\"].permissions' rl"


def test_copying_data_asks_for_a_sas_of_the_account_that_they_go_to() -> None:
    found = refused({"accounts": {**BOTH, "input": {**INPUT, "auth": "identity"}}}, workloads="olmo")
    said = "storage.accounts.input.auth is identity, but workload olmo copies its data by a SAS"
    assert found[said] == "change storage.accounts.input.auth in the stack file to what is allowed"


def test_a_sas_that_a_training_outlives_is_rotated_in_its_account() -> None:
    written = {"olmo-checkpoints": {"permissions": "racwdlmp", "sas": "user-delegation"}}
    output = {"containers": written, "rotation": "3"}
    by_identity = {**INPUT, "auth": "identity"}
    settings = load(
        {"vmSku": H100, "storage": {"accounts": {"input": by_identity, "output": output}}, **OLMO}, known=KNOWN
    )
    (text,) = warnings(settings)
    assert text.endswith("change storage.accounts.output.rotation before the SAS ends, to 4 for example")


def test_a_sas_that_makes_no_files_is_mended_in_its_account() -> None:
    accounts = {"input": {"hierarchicalNamespace": False, "containers": {"flat": {"permissions": "rwl"}}}}
    accounts |= {"output": {"containers": {"tree": {"permissions": "rwl"}}}}
    (text,) = warnings(load({"vmSku": H100, "storage": {"accounts": accounts}}))
    assert text.startswith("storage.accounts.output.containers.tree.permissions is rwl")
