"""Charts, their CRDs and manifests out of Go modules: which parts are taken, and of which version."""

from __future__ import annotations

import json

import pytest

from simulator.tools.catalogue import Tool
from simulator.tools.errors import ToolError
from simulator.tools.install import Installer
from tests.units.simulator.tools.conftest import Workshop

METADATA = 'name: hello\nversion: 0.0.0\nappVersion: "v1.0"\n'


def chart_in_a_module(workshop: Workshop, **more: object) -> dict[str, object]:
    """A chart whose images are of no release yet, and a `go` that finds it."""
    module = workshop.root / "module"
    (module / "charts" / "hello").mkdir(parents=True)
    (module / "charts" / "hello" / "Chart.yaml").write_text(METADATA)
    (module / "charts" / "hello" / "values.yaml").write_text("image: staging.test/hello:main\n")
    answer = json.dumps({"Dir": str(module), "Version": "v1.0"})
    fake_go = f"#!/bin/sh\nif [ \"$1\" = env ]; then echo go1.26.8; else echo '{answer}'; fi\n"
    (workshop.root / "path" / "go").write_text(fake_go)
    return {"module": "hello", "package": "example.test/hello", "folder": "charts/hello", **more}


def test_a_chart_comes_out_of_its_module_and_is_linked_with_the_modules_version(workshop: Workshop) -> None:
    """Upstream gives its chart a version only when it packages a release."""
    source = chart_in_a_module(workshop)
    tool = workshop.tool(build=None, chart=source)
    installer = workshop.installer(tool)
    installer.charts = workshop.root
    installer.install([tool])
    assert (workshop.root / "hello" / "Chart.yaml").read_text() == METADATA.replace("0.0.0", "1.0")
    assert (workshop.root / "hello").is_symlink()
    other = workshop.tool(build=None, chart=source, version="1.1")
    with pytest.raises(ToolError, match=r"hello 1\.1 is not in example\.test/hello v1\.0, which .*go\.mod pins"):
        workshop.installer(other).install([other])


def test_a_chart_whose_crds_are_a_link_has_those_of_its_module(workshop: Workshop) -> None:
    """Modules have no links. The version of what a chart installs may stand there without its v."""
    source = chart_in_a_module(workshop, crds="config/crd/bases")
    module = workshop.root / "module"
    (module / "config" / "crd" / "bases").mkdir(parents=True)
    (module / "config" / "crd" / "bases" / "greetings.yaml").write_text("kind: CustomResourceDefinition\n")
    (module / "charts" / "hello" / "Chart.yaml").write_text(METADATA.replace("v1.0", "1.0"))
    tool = workshop.tool(build=None, chart=source)
    installer = workshop.installer(tool)
    installer.charts = workshop.root
    installer.install([tool])
    assert [file.name for file in (workshop.root / "hello" / "crds").iterdir()] == ["greetings.yaml"]


def test_crds_of_one_of_our_charts_come_out_of_their_module(workshop: Workshop) -> None:
    source = chart_in_a_module(workshop)
    crds = workshop.root / "module" / "crds"
    crds.mkdir()
    (crds / "greetings.yaml").write_text("kind: CustomResourceDefinition\n")
    (workshop.root / "own" / "charts" / "crds").mkdir(parents=True)
    tool = workshop.tool(build=None, crds={**source, "folder": "crds", "chart": "own/charts/crds"})
    installer = workshop.installer(tool)
    installer.charts = workshop.root
    installer.install([tool])
    linked = workshop.root / "own" / "charts" / "crds" / "crds"
    assert linked.is_symlink()
    assert [file.name for file in linked.iterdir()] == ["greetings.yaml"]
    other = tool.model_copy(update={"version": "1.1"})
    with pytest.raises(ToolError, match=r"hello 1\.1 is not in example\.test/hello v1\.0"):
        workshop.installer(other).install([other])


def test_a_charts_values_are_those_of_its_release(workshop: Workshop) -> None:
    released = {"staging.test/": "registry.test/", ":main": ":v{version}"}
    tool = workshop.tool(build=None, chart=chart_in_a_module(workshop, released=released))
    installer = workshop.installer(tool)
    installer.charts = workshop.root
    installer.install([tool])
    assert (workshop.root / "hello" / "values.yaml").read_text() == "image: registry.test/hello:v1.0\n"


def test_a_chart_that_is_released_otherwise_is_not_taken(workshop: Workshop) -> None:
    tool = workshop.tool(build=None, chart=chart_in_a_module(workshop, released={":latest": ":v1.0"}))
    with pytest.raises(ToolError, match=r"hello 1\.0 has no ':latest' in its values\.yaml"):
        workshop.installer(tool).install([tool])


FAKE_KUBECTL = """#!/bin/sh
set -eu
echo "of: $(cat "$2/kustomization.yaml" | tr '\\n' ' ')" >"$4"
"""


def manifests_of_a_module(workshop: Workshop, kubectl: str = FAKE_KUBECTL) -> tuple[Installer, Tool]:
    """The tool whose manifests they are, and a kubectl that says of what it would make them."""
    source = {**chart_in_a_module(workshop), "folder": "config/default", "images": ["registry.test/hello"]}
    tool = workshop.tool(build=None, manifests=source)
    by = workshop.tool("kubectl")
    installer = workshop.installer(tool, by)
    installer.charts = workshop.root
    if kubectl:
        folder = installer.store.folder(installer.catalogue.key(by))
        folder.mkdir(parents=True)
        (folder / "kubectl").write_text(kubectl)
        (folder / "kubectl").chmod(0o755)
    return installer, tool


def test_manifests_are_made_of_a_modules_kustomization_with_the_releases_image(workshop: Workshop) -> None:
    installer, tool = manifests_of_a_module(workshop)
    installer.install([tool])
    assert (workshop.root / "hello").is_symlink()
    (made,) = (workshop.root / "hello").iterdir()
    assert made.name == "install.yaml"
    assert "module/config/default" in made.read_text()
    assert "name: registry.test/hello   newTag: v1.0" in made.read_text()


def test_manifests_go_where_the_tool_says(workshop: Workshop) -> None:
    installer, tool = manifests_of_a_module(workshop)
    assert tool.manifests
    moved = tool.model_copy(update={"manifests": tool.manifests.model_copy(update={"namespace": "ours"})})
    for each, says in ((tool, False), (moved, True)):
        installer.install([each])
        assert ("namespace: ours" in (workshop.root / "hello" / "install.yaml").read_text()) is says


def test_manifests_of_another_version_are_refused(workshop: Workshop) -> None:
    installer, tool = manifests_of_a_module(workshop)
    other = tool.model_copy(update={"version": "1.1"})
    with pytest.raises(ToolError, match=r"hello 1\.1 is not in example\.test/hello v1\.0, which .*go\.mod pins"):
        installer.install([other])


@pytest.mark.parametrize(
    ("kubectl", "says"),
    [("", "made by kubectl, which is not there yet: `make tools`"), ("#!/bin/sh\necho broken; exit 1\n", "broken")],
)
def test_manifests_that_cannot_be_made_are_not_there(kubectl: str, says: str, workshop: Workshop) -> None:
    installer, tool = manifests_of_a_module(workshop, kubectl)
    with pytest.raises(ToolError, match=says):
        installer.install([tool])
    assert not (workshop.root / "hello").exists()
