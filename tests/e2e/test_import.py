from __future__ import annotations

from pathlib import Path

import pytest

from k8s.objects import Object
from tests.support.world import World

pytestmark = pytest.mark.simulator
GROUP = "resourceGroups/imported"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/importedaccount"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: imports\nruntime: python\n")
    (tmp_path / "__main__.py").touch()
    return tmp_path


@pytest.fixture
def made(world: World) -> dict[str, Object]:
    group = world.arm("PUT", f"{GROUP}?api-version=2024-03-01", {"location": "eastus"})
    body = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "tags": {"by": "hand"}}
    world.arm("PUT", f"{ACCOUNT}?api-version=2024-01-01", body)
    account = world.arm("GET", f"{ACCOUNT}?api-version=2024-01-01")
    return {"azure-native:resources:ResourceGroup": group, "azure-native:storage:StorageAccount": account}


@pytest.mark.long
def test_the_program_text_of_an_import_changes_nothing(world: World, project: Path, made: dict[str, Object]) -> None:
    world.run(["pulumi", "stack", "init", "imports"], cwd=project)
    text = ""
    for token, resource in made.items():
        name = resource["name"]
        world.run(["pulumi", "import", token, name, resource["id"], "--yes", "--out", "text"], cwd=project)
        text += (project / "text").read_text()
    assert 'importedaccount = azure_native.storage.StorageAccount("importedaccount",' in text
    (project / "__main__.py").write_text(text)
    world.run(["pulumi", "preview", "--expect-no-changes", "--diff", "--non-interactive"], cwd=project)
