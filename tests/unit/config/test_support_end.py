from __future__ import annotations

from datetime import date

import pytest

from config.rules.support_end import support_warnings
from tests.support.case_files import case_table
from tests.support.settings import load, platform
from tests.support.sizes import H100


def warned(day: str, **cluster: str) -> list[str]:
    return list(support_warnings(load({"vmSku": H100, "cluster": cluster}), date.fromisoformat(day)))


@case_table(__file__, "ends")
def test_the_warning_has_the_dates_of_the_end_and_of_the_forced_upgrade(
    day: str, version: str, verb: str, end: str, forced: str
) -> None:
    (text,) = warned(day, kubernetesVersion=version)
    assert text.startswith(
        f"cluster.kubernetesVersion is {version}, and its support by AKS {verb} on {end}. From {forced}, AKS "
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
def test_the_fix_is_the_next_minor_version(version: str, tier: str, allowed: str, following: str) -> None:
    text = warned("2027-04-15", kubernetesVersion=version, tier=tier)[0]
    assert f"\n    allowed: {allowed}\n" in text
    assert f"pulumi config set -s dev --path cluster.kubernetesVersion {following} && pulumi up -s dev" in text


def test_suggests_no_version_that_the_scheduler_does_not_support() -> None:
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


def test_a_version_with_months_left_causes_no_warning() -> None:
    assert warned("2026-12-30", kubernetesVersion="1.35") == []
    assert warned("2026-12-31", kubernetesVersion="1.36") == []


def test_long_term_support_covers_two_patches_after_community_support() -> None:
    lts = {"tier": "Premium", "kubernetesVersion": "1.34"}
    (text,) = warned("2026-12-01", **lts)
    assert text.startswith("cluster.kubernetesVersion is 1.34, but long-term support covers only the two newest")
    assert "az aks get-versions --location eastus --output table" in text
    assert warned("2026-12-01", **{**lts, "kubernetesVersion": "1.35"}) == [], (
        "the community still supports all patches"
    )
    ends, patches = warned("2027-10-01", **lts)
    assert ("ends on 2027-11-30. From 2028-01-29," in ends, "two newest" in patches) == (True, True)


@pytest.mark.parametrize("version", ["1.32", "1.33", "1.34.12", "1.37"])
def test_the_tier_premium_accepts_versions_with_long_term_support(version: str) -> None:
    assert load({"vmSku": H100, "cluster": {"tier": "Premium", "kubernetesVersion": version}}).cluster.lts


def test_a_consumer_stack_gets_no_warning() -> None:
    others = {"dev": platform({"vmSku": H100})}
    stack = load({"platformStack": "dev"}, name="jobs", others=others)
    assert list(support_warnings(stack, date(2028, 1, 1))) == []
