from __future__ import annotations

import json
from typing import Any

import pytest

from simulator.tools.errors import ToolError
from tests.unit.simulator.tools.conftest import Workshop

METADATA = 'name: hello\nversion: 0.0.0\nappVersion: "v1.0"\n'
FAKE_KUBECTL = """#!/bin/sh
cat "$2/kustomization.yaml" >"$4"
"""
SOURCE = {"module": "hello", "package": "example.test/hello"}
CHART = SOURCE | {"folder": "charts/hello", "released": {"staging.test/": "registry.test/", ":main": ":v{version}"}}
MANIFESTS = SOURCE | {"folder": "config", "images": ["registry.test/hello"], "namespace": "ours"}


@pytest.fixture
def module(workshop: Workshop) -> Workshop:
    chart = workshop.root / "module" / "charts" / "hello"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text(METADATA)
    (chart / "values.yaml").write_text("image: staging.test/hello:main\n")
    answer = json.dumps({"Dir": str(workshop.root / "module"), "Version": "v1.0"})
    fake_go = f"#!/bin/sh\nif [ \"$1\" = env ]; then echo go1.26.8; else echo '{answer}'; fi\n"
    (workshop.root / "path" / "go").write_text(fake_go)
    return workshop


def test_a_chart_gets_the_version_and_the_values_of_its_release(module: Workshop) -> None:
    tool = module.tool(build=None, chart=CHART)
    installer = module.installer(tool)
    installer.charts = module.root
    installer.install([tool])
    assert (module.root / "hello" / "Chart.yaml").read_text() == METADATA.replace("0.0.0", "1.0")
    assert (module.root / "hello" / "values.yaml").read_text() == "image: registry.test/hello:v1.0\n"


def test_manifests_come_from_the_kustomization_with_the_releases_image(module: Workshop) -> None:
    tool, kubectl = module.tool(build=None, manifests=MANIFESTS), module.tool("kubectl")
    installer = module.installer(tool, kubectl)
    installer.charts = module.root
    with pytest.raises(ToolError, match="needs kubectl, which is not installed. To install both: make tools"):
        installer.install([tool])
    executable = installer.store.folder(installer.catalogue.key(kubectl)) / "kubectl"
    executable.parent.mkdir(parents=True)
    executable.write_text(FAKE_KUBECTL)
    executable.chmod(0o755)
    installer.install([tool])
    made = (module.root / "hello" / "install.yaml").read_text()
    assert "newTag: v1.0" in made
    assert "namespace: ours" in made


@pytest.mark.parametrize("source", [{"chart": CHART}, {"manifests": MANIFESTS}], ids=["chart", "manifests"])
def test_rejects_another_version_than_the_pinned_one(module: Workshop, source: dict[str, Any]) -> None:
    tool, kubectl = module.tool(build=None, version="1.1", **source), module.tool("kubectl")
    installer = module.installer(tool, kubectl)
    (executable := installer.store.folder(installer.catalogue.key(kubectl)) / "kubectl").parent.mkdir(parents=True)
    executable.touch()
    with pytest.raises(ToolError, match=r"hello 1\.1 is not in example\.test/hello v1\.0, which .*go\.mod pins"):
        installer.install([tool])
