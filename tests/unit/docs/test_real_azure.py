from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from config.data.jump_box import jump_box
from config.schema.storage import StorageSettings
from simulator.host.paths import ROOT
from simulator.tools.catalogue import load
from tests.support.pulumi_cli import run

BLOCK = re.compile(r"(?:^ {4}\S.*\n)+", re.MULTILINE)


def commands() -> str:
    blocks = BLOCK.findall((ROOT / "docs" / "real-azure.md").read_text("utf-8"))
    (block,) = [block for block in blocks if "encryptionsalt" in block]
    return str(block.replace("# asks for it", "another-password").replace("pulumi up\n", ""))


@pytest.mark.simulator
def test_the_copy_of_dev_has_no_settings_of_the_simulator(tmp_path: Path) -> None:
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    run(tmp_path, f"set -e\n{commands()}")
    run(tmp_path, "pulumi config get --path workloadOptions.jupyterlab.password")  # decrypts it
    text = (tmp_path / "Pulumi.prod.yaml").read_text("utf-8")
    assert [line for line in text.splitlines() if "#" in line] == [text.splitlines()[0]], (
        "only the line with the schema"
    )
    config = yaml.safe_load(text)["config"]
    assert config["pulumi:disable-default-providers"] == ["kubernetes"]
    assert config["azure-native:location"] == "eastus"
    own = {key.removeprefix("ai-on-aks:"): value for key, value in config.items() if key.startswith("ai-on-aks:")}
    assert not {"charts", "cluster", "workloads"} & set(own)
    assert own["nodeCount"] == "0", "the first update has no nodes"
    assert StorageSettings.model_validate(own["storage"]).protect


def test_requires_a_cli_that_is_not_newer_than_the_pinned_ones() -> None:
    """Before 3.244.0, error hooks did not wait (pulumi/pulumi#23347, components/azure/retries.py)."""
    wanted = yaml.safe_load((ROOT / "Pulumi.yaml").read_text("utf-8"))["requiredPulumiVersion"]
    assert wanted.startswith(">=3.")
    least = parts(wanted.removeprefix(">="))
    assert least >= (3, 244, 0)
    assert least <= parts(load().by_name["pulumi"].version)
    assert least <= parts(jump_box().tools["pulumi"].version)


def parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
