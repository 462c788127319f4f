"""Generates the reference of settings from their models: docs/configuration.md, Pulumi.yaml and the stack schema.

Also generates the tables of VM sizes, node conditions and Azure errors. After a change of a model, run `python -m
tools.reference` and review the diff.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import operators
import workloads
from config.data.prices import price_list
from config.data.skus import VmSku, catalogue, series
from config.rules.azure_errors import Place, entries
from config.rules.platform_stack import CONSUMER_KEYS
from config.schema.inventory import Inventory
from config.schema.operators import OperatorSettings
from config.schema.workload import WorkloadOptions
from operators.node_problem_detector.conditions import condition_type, conditions
from simulator.host.paths import ROOT
from tools.meanings import meanings
from tools.stack_schema import first_paragraph, stack_schema

PAGE = ROOT / "docs" / "configuration.md"
CONDITIONS = ROOT / "docs" / "node-conditions.md"
ERRORS = ROOT / "docs" / "azure-errors.md"
VM_SIZES = ROOT / "docs" / "vm-sizes.md"
PROJECT = ROOT / "Pulumi.yaml"
SCHEMA = ROOT / "stack-file.schema.json"
INVENTORY = Inventory(operators.find(), workloads.find())
STACK_FILE = INVENTORY.stack_file
HEADER = "| key | default | meaning |\n|---|---|---|\n"
TABLE = re.compile(r"(?<=^<!-- keys: )(.+)( -->\n\n)(?:\|.*\n)*", re.MULTILINE)

_ERROR_CODE = re.compile(r"(?<![*+])\b(?:[A-Z]\w*[a-z]\w*[A-Z]\w*\b(?!\\)|AADSTS)")

Row = tuple[str, str, str]


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Returns the model that a type is or contains, as in `Model | None` and `dict[str, Model]`, or None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_in(part))), None)


def shown(default: Any) -> str:
    """Returns a default for the table; empty if unset."""
    if isinstance(default, tuple):
        return ", ".join(map(shown, default))
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default in (None, {}, PydanticUndefined) else str(default)


def meaning(model: type[BaseModel], name: str) -> str:
    return first_paragraph(meanings(model).get(name, "")).rstrip(".")


def keys(model: type[BaseModel], prefix: str = "", above: str = "", *, folded: bool = True) -> Iterator[Row]:
    """Yields all settings of a model. `above` is the meaning of the model itself.

    `folded` omits the keys of a nested model that the outer model also has.
    """
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        below = model_in(field.annotation)
        place = f"{path}.<key>" if below and "dict[" in str(field.annotation) else path
        if below and folded and below in model.__mro__:
            yield place, "", meaning(model, name)
        elif below:
            yield from keys(below, f"{place}.", meaning(model, name), folded=folded)
        else:
            of_operator = issubclass(model, OperatorSettings) and name == "enabled"
            yield path, shown(field.default), above if of_operator else meaning(model, name)


def options(workload: str, common: Sequence[Row] = ()) -> list[Row]:
    model = INVENTORY.workloads[workload].options
    inherited = {
        field.alias for base in model.__bases__ if issubclass(base, BaseModel) for field in base.model_fields.values()
    }
    own_first = sorted(keys(model), key=lambda row: row[0] in inherited)
    return [(f"workloadOptions.{workload}.{row[0]}", *row[1:]) for row in own_first if row not in common]


def tables() -> dict[str, list[Row]]:
    consumer = (*CONSUMER_KEYS, *INVENTORY.workload_keys)
    top = [row for row in keys(STACK_FILE) if row[0] != "workloadOptions"]
    common = list(keys(WorkloadOptions))
    return {
        "every stack": [row for row in top if row[0].partition(".")[0] in consumer],
        "platforms": [row for row in top if row[0].partition(".")[0] not in consumer],
        "every workload": [(f"workloadOptions.<name>.{row[0]}", *row[1:]) for row in common],
        **{name: options(name, common) for name in INVENTORY.workloads},
    }


def table(rows: Sequence[Row]) -> str:
    return HEADER + "".join(f"| `{key}` |{f' `{default}`' * bool(default)} | {text} |\n" for key, default, text in rows)


def page(text: str) -> str:
    found = tables()
    lacking = found.keys() - {match[1] for match in TABLE.finditer(text)}
    if lacking:
        lines = "\n".join(f"<!-- keys: {name} -->" for name in sorted(lacking))
        raise ValueError(f"docs/configuration.md lacks these lines. Add each with an empty line below it:\n{lines}")
    return TABLE.sub(lambda match: f"{match[1]}{match[2]}{table(found[match[1]])}", text)


def names_below(field: FieldInfo) -> str:
    model = model_in(field.annotation)
    if model is None:
        return ""
    parts = [
        (str(each.alias), "" if model_in(each.annotation) in model.__mro__ else names_below(each))
        for each in model.model_fields.values()
    ]
    return ", ".join(f"{name} ({below})" if below else name for name, below in parts)


def project(text: str) -> str:
    before, section, _ = text.partition("\nconfig:\n")
    return before + section + "".join(map(_declared, STACK_FILE.model_fields))


def _declared(name: str) -> str:
    field = STACK_FILE.model_fields[name]
    below, text = names_below(field), meaning(STACK_FILE, name)
    text = f"{text}. Keys: {below}" if below else text
    wrapped = textwrap.fill(text, 120, initial_indent=" " * 6, subsequent_indent=" " * 6, break_on_hyphens=False)
    return f'  {field.alias}:\n    description: >-\n{wrapped}\n    default: ""\n'


def conditions_page(text: str) -> str:
    rows = (
        (f"`{condition_type(name)}`", each.alert.severity, each.alert.lasts, each.means, each.do)
        for name, each in conditions().items()
    )
    lines = ["| condition | alert | after | a problem means | what to do |", "|---|---|---|---|---|"]
    made = "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
    return re.sub(r"(?<=<!-- conditions -->\n\n)(?:\|.*\n)*", f"{made}\n", text)


def vm_sizes_page(text: str) -> str:
    gpu_sizes = [_gpu_size(each) for each in catalogue().values() if each.gpus and each.supported]
    others = [
        [f"`{each.name.format('<n>')}`", f"{min(each.vcpus)} to {max(each.vcpus)}", str(each.gib), f"`{each.family}`"]
        for each in series()
    ]
    for name, rows in (("gpu sizes", gpu_sizes), ("other sizes", others)):
        made = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        text = re.sub(rf"(<!-- {name} -->\n\n(?:\|.*\n){{2}})(?:\|.*\n)*", rf"\g<1>{made}", text)
    return text


def _gpu_size(size: VmSku) -> list[str]:
    price = price_list().node(size.name, price_list().region)
    return [
        f"`{size.name}`",
        f"{size.gpus} x {size.gpu_model}, {size.gpu_memory_gb} GB",
        f"{size.infiniband.hcas} x {size.infiniband.gbps} Gb/s" if size.infiniband else "",
        str(size.vcpus),
        str(size.memory_gib),
        f"{size.temp_gib}{' (NVMe)' * size.temp_is_nvme}" if size.temp_gib else "",
        f"{size.nvme.count} disks, {size.nvme.total_tib} TiB" if size.nvme else "",
        f"`{size.family}`",
        "" if price is None else f"{price:.2f}",
    ]


def errors_page(text: str) -> str:
    lines = ["| Azure's error | means | what to do |", "|---|---|---|"]
    for entry in entries():
        codes = [f"`{code}`" for code in dict.fromkeys(_ERROR_CODE.findall(entry.error.replace(r"\b", " ")))]
        exits = [f"exit code {', '.join(map(str, entry.exit))}"] if entry.exit else []
        fix = "<br>".join(f"`{each}`" if re.match("(az|pulumi|kubectl|{)", each) else each for each in entry.fix)
        fix = fix.replace("`{set_tag}`", "the command that sets the tag under `tags`")
        fix = fix.replace("{managed_disk}", Place.managed_disk).replace("{", "<").replace("}", ">").replace("|", "\\|")
        explanation = (
            f"{entry.meaning.replace(' (exit code {exit})', '')} ([source]({entry.source}))".replace("{", "<")
            .replace("}", ">")
            .replace("|", "\\|")
        )
        lines.append(f"| {'; '.join([*codes, *exits])} | {explanation} | {fix} |")
    made = "\n".join(lines)
    return re.sub(r"(?<=<!-- errors -->\n\n)(?:\|.*\n)*", lambda _: f"{made}\n", text)


FILES: dict[Path, Callable[[str], str]] = {
    PROJECT: project,
    SCHEMA: lambda _: stack_schema(INVENTORY),
    VM_SIZES: vm_sizes_page,
    CONDITIONS: conditions_page,
    ERRORS: errors_page,
    PAGE: page,
}
"""Functions that return a file's new text. PAGE is last, because its function fails if the page lacks a table."""


def written(file: Path) -> str:
    return FILES[file](file.read_text("utf-8"))


if __name__ == "__main__":
    for file in FILES:
        file.write_text(written(file), encoding="utf-8")
