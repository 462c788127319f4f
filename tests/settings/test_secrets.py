"""Passwords among the options of workloads: refused in plain text, and never printed."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from config.errors import SettingsError
from config.workload import Requirements, WorkloadOptions
from tests.settings.stacks import H100, Workload, load


class PasswordOptions(WorkloadOptions):
    password: SecretStr | None = None


STACK = {"vmSku": H100, "workloads": "shell", "workloadOptions": {"shell": {"password": "hunter2"}}}


KNOWN = {"shell": Workload("shell", Requirements(), PasswordOptions)}


def test_an_encrypted_password_reaches_its_workload() -> None:
    options = load(STACK, known=KNOWN, secret=("workloadOptions",)).placements["shell"].options
    assert isinstance(options, PasswordOptions)
    assert options.password == SecretStr("hunter2")
    assert "hunter2" not in repr(options)


def test_a_password_in_plain_text_is_refused_without_being_printed() -> None:
    with pytest.raises(SettingsError) as caught:
        load(STACK, known=KNOWN)
    assert "hunter2" not in str(caught.value)
    (problem,) = caught.value.problems
    assert "plain text" in problem.what
    assert problem.fix == "pulumi config set --secret --path workloadOptions.shell.password '<value>'"


def test_a_password_of_the_wrong_kind_is_not_printed() -> None:
    with pytest.raises(SettingsError) as caught:
        load(
            {**STACK, "workloadOptions": {"shell": {"password": ["hunter2"]}}}, known=KNOWN, secret=("workloadOptions",)
        )
    assert "hunter2" not in str(caught.value)


def test_other_options_beside_a_password_are_told_in_full() -> None:
    with pytest.raises(SettingsError) as caught:
        load({**STACK, "workloadOptions": {"shell": {"pool": "gpus"}}}, known=KNOWN, secret=("workloadOptions",))
    assert "is 'gpus', not a pool of this stack" in str(caught.value)
