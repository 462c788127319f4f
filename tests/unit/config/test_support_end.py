"""Warnings by date: the end of support of a Kubernetes version, and AKS's own upgrades."""

from __future__ import annotations

from datetime import date

import pytest

from config.rules.support_end import support_warnings
from tests.support.case_files import case_table
from tests.support.settings import load, platform
from tests.support.sizes import H100


def said(day: str, **cluster: str) -> list[str]:
    return list(support_warnings(load({"vmSku": H100, "cluster": cluster}), date.fromisoformat(day)))


@case_table(__file__, "ends")
def test_the_end_of_a_version_is_reported_with_the_day_of_the_forced_upgrade(
    day: str, version: str, verb: str, end: str, forced: str
) -> None:
    (text,) = said(day, kubernetesVersion=version)
    assert text.startswith(
        f"cluster.kubernetesVersion is {version}, and AKS's support of it {verb} on {end}. From {forced} on, AKS "
    )
    assert "\n    allowed: 1." in text
    assert "while no job runs" in text


@pytest.mark.parametrize(
    ("version", "tier", "allowed", "following"),
    [
        ("1.36", "Standard", "1.37", "1.37"),
        ("1.32", "Premium", "1.33", "1.33"),
    ],
)
def test_the_fix_is_the_next_minor_version_and_no_older_one(
    version: str, tier: str, allowed: str, following: str
) -> None:
    text = said("2027-04-15", kubernetesVersion=version, tier=tier)[0]
    assert f"\n    allowed: {allowed}\n" in text
    assert f"pulumi config set -s dev --path cluster.kubernetesVersion {following} && pulumi up -s dev" in text


def test_a_stack_whose_scheduler_is_too_old_for_the_next_version_gets_no_command_that_is_refused() -> None:
    operators = {
        "scheduler": "scheduler-plugins-scheduler",
        "kueue": {"enabled": True},
        "appwrapper": {"enabled": True},
    }
    stack = load({"vmSku": H100, "cluster": {"kubernetesVersion": "1.35"}, "operators": operators})
    (text,) = support_warnings(stack, date(2027, 2, 1))
    assert (
        "\n    allowed: 1.36, once a newer scheduler-plugins supports it, or with operators.scheduler volcano" in text
    )
    assert "cluster.tier Premium (support until 2028-03-31)" in text
    assert "pulumi config set" not in text


def test_a_version_with_months_left_is_not_reported() -> None:
    assert said("2026-12-30", kubernetesVersion="1.35") == []
    assert said("2026-12-31", kubernetesVersion="1.36") == []


def test_long_term_support_covers_two_patches_once_the_communitys_support_has_ended() -> None:
    lts = {"tier": "Premium", "kubernetesVersion": "1.34"}
    (text,) = said("2026-12-01", **lts)
    assert text.startswith("cluster.kubernetesVersion is 1.34, of which long-term support covers the two newest")
    assert "az aks get-versions --location eastus --output table" in text
    assert said("2026-12-01", **{**lts, "kubernetesVersion": "1.35"}) == [], "the community still supports all patches"
    ends, patches = said("2027-10-01", **lts)
    assert ("ends on 2027-11-30. From 2028-01-29 on" in ends, "two newest" in patches) == (True, True)


@pytest.mark.parametrize("version", ["1.32", "1.33", "1.34.12", "1.37"])
def test_the_tier_premium_accepts_versions_of_long_term_support(version: str) -> None:
    assert load({"vmSku": H100, "cluster": {"tier": "Premium", "kubernetesVersion": version}}).cluster.lts


def test_a_stack_on_a_platform_of_another_has_no_version_to_upgrade() -> None:
    others = {"dev": platform({"vmSku": H100})}
    stack = load({"platformStack": "dev"}, name="jobs", others=others)
    assert list(support_warnings(stack, date(2028, 1, 1))) == []
