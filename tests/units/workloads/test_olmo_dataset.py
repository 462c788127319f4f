"""Which files a training config names, in every form that YAML allows; other addresses are refused by name."""

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

SCRIPT = ROOT / "workloads/olmo/scripts/dataset.awk"
A, B = "https://olmo-data.org/preprocessed/v1/part-0.npy", "s3://ai2-llm/preprocessed/v1/part-1.npy"
URLS = [A, "https://olmo-data.org/preprocessed/v1/part-1.npy"]
FORMS = {
    "block": f"data:\n  paths:\n    - {A}\n    - {B}\n  num_workers: 8\n",
    "at the key's column": f"data:\n  paths:\n  - {A}\n  - {B}\n",
    "quotes": f"data:\n  'paths':\n    - \"{A}\"\n    - '{B}'\n",
    "comments": f"data: # all\n  paths: # of 2\n    # - {A}x\n\n    - {A} # first\n    - {B}\n",
    "flow": f"data:\n  paths: [{A}, {B}]\n  num_workers: 8\n",
    "flow, quoted": f"data:\n  paths: [ \"{A}\" , '{B}' ] # both\n",
    "flow over lines": f"data:\n  paths: [\n    {A},  # first\n    {B},\n  ]\n  num_workers: 8\n",
    "a flow mapping": f"data: {{paths: [{A}, {B}], num_workers: 8}}\n",
    "an anchor": f"data: &data\n  paths: &paths\n    - &first {A}\n    - {B}\n",
    "windows": f"data:\r\n  paths:\r\n    - {A}\r\n    - {B}\r\n",
    "a mark": f"\ufeffdata:\n  paths:\n    - {A}\n    - {B}\n",
    "after a document's start": f"---\nrun_name: x\ndata:\n  paths:\n    - {A}\n    - {B}\n",
    "masks": f"data:\n  paths:\n    - {A}\n  label_mask_paths:\n    - {B}\n",
    "evaluators": f"evaluators:\n- label: c4\n  data:\n    paths: ['{A}']\n    datasets:\n      c4_en:\n      - {B}\n",
}


def run(config: Path, want: str, most: int = 0, *, evaluate: bool = True) -> subprocess.CompletedProcess[str]:
    values = {"want": want, "data": "/data", "max": most, "evaluate": int(evaluate)}
    words = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
    return subprocess.run(["awk", *words, "-f", str(SCRIPT), str(config)], capture_output=True, text=True)


def local(value: Any) -> Any:
    """The same with local paths in place of addresses."""
    if isinstance(value, dict):
        return {key: local(each) for key, each in value.items()}
    if isinstance(value, list):
        return [local(each) for each in value]
    return re.sub(r"^(https?://olmo-data\.org|s3://ai2-llm)/", "/data/", value) if isinstance(value, str) else value


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_list_is_read_as_yaml_reads_it(tmp_path: Path, form: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_bytes(f"{FORMS[form]}model: {{d_model: 8}}\n".encode())
    assert run(config, "urls").stdout.split() == URLS
    assert yaml.safe_load(run(config, "config").stdout) == local(yaml.safe_load(config.read_text("utf-8-sig")))


@pytest.mark.parametrize("form", [name for name in FORMS if name not in ("masks", "evaluators")])
def test_only_the_first_files_are_used(tmp_path: Path, form: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_bytes(FORMS[form].encode())
    assert run(config, "urls", 1).stdout.split() == URLS[:1]
    assert yaml.safe_load(run(config, "config", 1).stdout)["data"]["paths"] == [local(A)]


def test_each_file_keeps_its_mask(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(FORMS["masks"])
    assert run(config, "urls", 1).stdout.split() == URLS


def test_evaluations_go_with_their_files(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(FORMS["evaluators"] + FORMS["block"])
    assert run(config, "urls", 1, evaluate=False).stdout.split() == URLS[:1]
    assert yaml.safe_load(run(config, "config", evaluate=False).stdout)["evaluators"] == []


@pytest.mark.parametrize(
    "address",
    [
        "r2://olmo-data/preprocessed/part-0.npy",
        "weka://oe-training-default/ai2-llm/part-0.npy",
        "gs://ai2-llm/part-0.npy",
        "s3://ai2-llm-private/part-0.npy",
        "https://example.org/part-0.npy",
        "http://olmo-data.org.example.org/part-0.npy",
        "/weka/oe-training-default/part-0.npy",
        "part-0.npy",
        "${path.glob:/data/part-*.npy}",
        "s3://ai2-llm/preprocessed/*.npy",
        "https://olmo-data.org/part-0.npy?versionId=1",
        "https://olmo-data.org/../part-0.npy",
        "https://olmo-data.org/preprocessed/",
        "*paths",
        ">-",
    ],
)
@pytest.mark.parametrize("form", ["block", "quotes", "windows", "evaluators", "flow, quoted"])
def test_other_addresses_are_refused_by_file_and_line(tmp_path: Path, address: str, form: str) -> None:
    config = tmp_path / "config.yaml"
    text = FORMS[form].replace(A, address)
    config.write_bytes(text.encode())
    line = text[: text.index(address)].count("\n") + 1
    for want in ("urls", "config"):
        answer = run(config, want)
        assert (answer.returncode, answer.stdout) == (1, "")
        assert answer.stderr.startswith(f"{config}:{line}: {address}\n")


@pytest.mark.parametrize("form", ["paths: {}", "paths: >-\n    {}", "datasets:\n    c4: {}", "paths:\n\t- {}"])
def test_addresses_outside_of_lists_are_refused(tmp_path: Path, form: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"data:\n  {form.format(B)}\n")
    assert re.search(rf"^{config}:\d: (- )?{B} \(not an entry of a list\)\n", run(config, "urls").stderr)


def test_what_is_refused_is_told_in_short_and_only_where_it_is_used(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    entries = "".join(f"    - weka://x/part-{number}.npy\n" for number in range(1000))
    config.write_text(f"data:\n  paths:\n    - {A}\n{entries}")
    assert run(config, "urls", 1).stdout.split() == URLS[:1]
    assert "\nand 995 more\n" in run(config, "urls").stderr
    config.write_bytes(f"data:\n  paths: [{A}]\n".encode("utf-16"))
    assert f"{config}:1: UTF-16" in run(config, "urls").stderr


@given(st.lists(st.sampled_from([A, B]), min_size=1, max_size=6), st.integers(0, 7), st.booleans())
def test_lists_of_any_length_are_cut_as_asked(
    tmp_path_factory: pytest.TempPathFactory, addresses: list[str], most: int, flow: bool
) -> None:
    config = tmp_path_factory.getbasetemp() / "any.yaml"
    files = yaml.safe_dump({"paths": addresses}, default_flow_style=flow, width=60)
    config.write_text("data:\n" + textwrap.indent(files, "  "))
    expected = [local(each) for each in addresses][: most or None]
    assert yaml.safe_load(run(config, "config", most).stdout)["data"]["paths"] == expected
