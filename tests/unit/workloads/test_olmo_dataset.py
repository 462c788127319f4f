from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simulator.host.paths import ROOT
from tests.support.case_files import read

SCRIPT = ROOT / "workloads/olmo/scripts/dataset.awk"
A, B = "https://olmo-data.org/preprocessed/v1/part-0.npy", "s3://ai2-llm/preprocessed/v1/part-1.npy"
URLS = [A, "https://olmo-data.org/preprocessed/v1/part-1.npy"]
CASES = read(__file__, "olmo_dataset")
FORMS: dict[str, str] = CASES["forms"]


def run(config: Path, want: str, most: int = 0, *, evaluate: bool = True) -> subprocess.CompletedProcess[str]:
    values = {"want": want, "data": "/data", "max": most, "evaluate": int(evaluate)}
    words = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
    return subprocess.run(["awk", *words, "-f", str(SCRIPT), str(config)], capture_output=True, text=True)


def local(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: local(each) for key, each in value.items()}
    if isinstance(value, list):
        return [local(each) for each in value]
    return re.sub(r"^(https?://olmo-data\.org|s3://ai2-llm)/", "/data/", value) if isinstance(value, str) else value


@pytest.mark.parametrize("form", FORMS)
def test_reads_lists_in_every_form_of_yaml(tmp_path: Path, form: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_bytes(f"{FORMS[form]}model: {{d_model: 8}}\n".encode())
    assert run(config, "urls").stdout.split() == URLS
    assert yaml.safe_load(run(config, "config").stdout) == local(yaml.safe_load(config.read_text("utf-8-sig")))


@pytest.mark.parametrize("form", [name for name in FORMS if name not in ("masks", "evaluators")])
def test_uses_only_the_first_files(tmp_path: Path, form: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_bytes(FORMS[form].encode())
    assert run(config, "urls", 1).stdout.split() == URLS[:1]
    assert yaml.safe_load(run(config, "config", 1).stdout)["data"]["paths"] == [local(A)]


def test_each_file_keeps_its_mask(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(FORMS["masks"])
    assert run(config, "urls", 1).stdout.split() == URLS


def test_leaves_out_evaluations_and_their_files(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(FORMS["evaluators"] + FORMS["block"])
    assert run(config, "urls", 1, evaluate=False).stdout.split() == URLS[:1]
    assert yaml.safe_load(run(config, "config", evaluate=False).stdout)["evaluators"] == []


@pytest.mark.parametrize("address", CASES["others"])
@pytest.mark.parametrize("form", ["block", "quotes", "windows", "evaluators", "flow, quoted"])
def test_rejects_other_addresses_with_file_and_line(tmp_path: Path, address: str, form: str) -> None:
    config = tmp_path / "config.yaml"
    text = FORMS[form].replace(A, address)
    config.write_bytes(text.encode())
    line = text[: text.index(address)].count("\n") + 1
    for want in ("urls", "config"):
        answer = run(config, want)
        assert (answer.returncode, answer.stdout) == (1, "")
        assert answer.stderr.startswith(f"{config}:{line}: {address}\n")


@pytest.mark.parametrize("form", ["paths: {}", "paths: >-\n    {}", "datasets:\n    c4: {}", "paths:\n\t- {}"])
def test_rejects_addresses_outside_of_lists(tmp_path: Path, form: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"data:\n  {form.format(B)}\n")
    assert re.search(rf"^{config}:\d: (- )?{B} \(not an entry of a list\)\n", run(config, "urls").stderr)


def test_shortens_the_error_and_ignores_unused_addresses(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    entries = "".join(f"    - weka://x/part-{number}.npy\n" for number in range(1000))
    config.write_text(f"data:\n  paths:\n    - {A}\n{entries}")
    assert run(config, "urls", 1).stdout.split() == URLS[:1]
    assert "\nand 995 more\n" in run(config, "urls").stderr
    config.write_bytes(f"data:\n  paths: [{A}]\n".encode("utf-16"))
    assert f"{config}:1: UTF-16" in run(config, "urls").stderr


@given(st.lists(st.sampled_from([A, B]), min_size=1, max_size=6), st.integers(0, 7), st.booleans())
def test_cuts_lists_of_any_length(
    tmp_path_factory: pytest.TempPathFactory, addresses: list[str], most: int, flow: bool
) -> None:
    config = tmp_path_factory.getbasetemp() / "any.yaml"
    files = yaml.safe_dump({"paths": addresses}, default_flow_style=flow, width=60)
    config.write_text("data:\n" + textwrap.indent(files, "  "))
    expected = [local(each) for each in addresses][: most or None]
    assert yaml.safe_load(run(config, "config", most).stdout)["data"]["paths"] == expected
