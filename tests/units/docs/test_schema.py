"""Stack files keep to the schema by which editors check them, and mistakes do not. Helm judges, as of chart values."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.host import paths
from simulator.host.paths import ROOT
from tests.support.golden import FILES, H100, STACKS
from tests.support.pages import files
from tests.support.pulumi_cli import run
from tests.support.reference import SCHEMA
from tests.support.settings import full_name

NAMES_SCHEMA = f"# yaml-language-server: $schema={SCHEMA.name}\n"
COPIES = {"hello": files(ROOT / "docs" / "adding-a-workload.md")["Pulumi.hello.yaml"]}
SECRET = {"secure": "v1:abc:def"}
ALSO_GOOD: dict[str, dict[str, Any]] = {
    "scalars-as-text": {"nodeCount": "2", "cluster": {"entra": "true", "systemPool": {"count": "2"}}},
    "text-as-numbers": {"cluster": {"kubernetesVersion": 1.35}, "storage": {"rotation": 2}},
    "list-of-workloads": {"workloads": ["olmo", "metaseq"], "modelSize": "125m"},
    "workloads-with-spaces": {"workloads": "olmo, metaseq"},
    "nothing-set": {"vmSku": "", "workloads": "", "cluster": "", "registry": {"name": ""}, "modelSize": ""},
    "maps-as-text": {"cluster": '{"tier": "Free"}', "pools": "{}"},
    "secrets": {"vmSku": SECRET, "workloadOptions": {"jupyterlab": {"password": SECRET}}, "cluster": SECRET},
    "others": {"azure-native:location": "westus", "kubernetes:x": True, "pulumi:tags": {"a": "b"}},
    "empty-maps": {"cluster": {}, "pools": {}, "workloadOptions": {"olmo": {}}},
    "values": {"operators": {"volcano": {"values": {"a": [1, {"b": "c"}]}}}},
    "overrides": {"workloadOptions": {"olmo": {"podOverrides": {"spec": {"priorityClassName": "low"}}}}},
}  # fmt: skip
BAD: dict[str, dict[str, Any]] = {
    "unknown-key": {"vmSkus": H100},
    "unknown-key-below": {"cluster": {"teir": "Free"}},
    "unknown-option": {"workloadOptions": {"olmo": {"steps": 3}}},
    "unknown-workload": {"workloads": "olmo,metasek"},
    "options-of-an-unknown-workload": {"workloadOptions": {"metasek": {}}},
    "unknown-operator": {"operators": {"vulcano": {"enabled": True}}},
    "no-such-size": {"vmSku": "Standard_ND96"},
    "no-such-model": {"modelSize": "1.4b"},
    "too-many-nodes": {"nodeCount": 1001},
    "text-that-is-no-number": {"nodeCount": "two"},
    "text-that-is-no-boolean": {"cluster": {"entra": "yes"}},
    "plain-password": {"workloadOptions": {"jupyterlab": {"password": "open-sesame"}}},
    "pattern": {"storage": {"containers": {"data": {"permissions": "lr"}}}},
    "name-of-a-container": {"storage": {"containers": {"Data": {}}}},
    "foreign-namespace": {"ai-on-ask:vmSku": H100},
}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty one, whose values have the schema."""
    folder = tmp_path_factory.mktemp("chart")
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: stack-files\nversion: 1.0.0\n")
    shutil.copy(SCHEMA, folder / "values.schema.json")
    return folder


def faults(chart: Path, content: str) -> str:
    """What the schema has against a stack file; empty for one that keeps to it."""
    file = chart / "stack.yaml"
    file.write_text(content)
    command = [str(paths.tool("helm")), "template", "x", str(chart), "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "don't meet the specifications of the schema" in done.stderr, done.stderr
    return done.stderr if done.returncode else ""


def stack_file(keys: dict[str, Any]) -> str:
    return yaml.safe_dump({"config": {full_name(key): value for key, value in keys.items()}})


@pytest.mark.simulator
@pytest.mark.parametrize("text", [file.read_text("utf-8") for file in FILES.values()] + [*COPIES.values()])
def test_stack_files_of_the_repository_keep_to_it(chart: Path, text: str) -> None:
    text = text.replace("hello-gpu,hello-nodes", "olmo").replace("hello-gpu: { gpus: 2 }", "olmo: {}")
    assert faults(chart, text) == ""


@pytest.mark.simulator
@pytest.mark.parametrize("keys", {**STACKS, **ALSO_GOOD}.values(), ids={**STACKS, **ALSO_GOOD}.keys())
def test_what_the_program_takes_keeps_to_it(chart: Path, keys: dict[str, Any]) -> None:
    assert faults(chart, stack_file(keys)) == ""


@pytest.mark.simulator
@pytest.mark.parametrize("keys", BAD.values(), ids=BAD.keys())
def test_mistakes_do_not(chart: Path, keys: dict[str, Any]) -> None:
    assert faults(chart, stack_file(keys))


@pytest.mark.simulator
def test_pulumi_keeps_the_comment_that_names_it(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(f"{NAMES_SCHEMA}config:\n  ai-on-aks:nodeCount: 1\n")
    run(
        tmp_path, "pulumi stack init dev && pulumi config set nodeCount 3 && pulumi config set --path cluster.tier Free"
    )
    text = file.read_text("utf-8")
    assert text.startswith(NAMES_SCHEMA)
    assert "ai-on-aks:nodeCount: 3" in text.replace('"', "")


@pytest.mark.parametrize("name", [*FILES, *COPIES])
def test_stack_files_name_it(name: str) -> None:
    text = FILES[name].read_text("utf-8") if name in FILES else COPIES[name].partition("\n")[2]
    assert text.startswith(NAMES_SCHEMA)
