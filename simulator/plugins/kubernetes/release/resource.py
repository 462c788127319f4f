"""The operations of a Release, and its state in the engine."""

from __future__ import annotations

import copy
import json
from typing import Any

import yaml

from k8s.objects import Object
from simulator.plugins.errors import InitializationFailed, PluginError
from simulator.plugins.kubernetes.checkpoint import INPUTS, prune
from simulator.plugins.kubernetes.engine import WARNING
from simulator.plugins.kubernetes.kinds import identity, parse_identity
from simulator.plugins.kubernetes.release import options, records
from simulator.plugins.kubernetes.release.helm import HelmError, helm
from simulator.plugins.kubernetes.session import Session
from simulator.plugins.kubernetes.structural import compare, ignored, path_text, replacing
from simulator.plugins.marshal import UNKNOWN, Properties, Secret, decode, has_unknown, keep_secrets, reveal
from simulator.plugins.protocol import provider_pb2

DiffResponse = provider_pb2.DiffResponse

_IDENTITY = (("name",), ("namespace",))


def check(session: Session, request: provider_pb2.CheckRequest) -> tuple[Properties, dict[str, str]]:
    """Returns the inputs with the chart's version, and errors by property."""
    given = decode(request.news)
    inputs = options.complete(given, reveal(decode(request.olds)), request.urn, session.namespace)
    if inputs["allowNullValues"]:
        session.engine.log(
            request.urn,
            "`allowNullValues` is deprecated and has no effect; null values in Helm chart values are preserved by "
            "default.",
            WARNING,
        )
    if has_unknown(inputs):
        return inputs, {}
    plain: Object = reveal(inputs)
    try:
        inputs["version"] = _chart_version(session, plain)
    except HelmError as error:
        return inputs, {"chart": f"{error}; check the chart name and repository configuration."}
    session.charts.append(lambda: _crds(session, plain))
    return inputs, {}


def diff(request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
    """Compares the live release with the new inputs. Ignores values that neither old nor new inputs set."""
    state, new = decode(request.olds), decode(request.news)
    old_inputs = reveal(_inputs(state))
    if "version" in request.ignoreChanges:
        new["version"] = state.get("version")
    wanted: Object = reveal(new)
    current = prune(reveal(state), _union(old_inputs, wanted))
    found = compare(current, wanted, _IDENTITY)
    changes = {path: change for path, change in found.items() if not ignored(path, request.ignoreChanges)}
    return DiffResponse(
        changes=DiffResponse.DIFF_SOME if changes else DiffResponse.DIFF_NONE,
        replaces=replacing(changes),
        diffs=sorted({str(path[0]) for path in changes}),
        detailedDiff={path_text(path): change for path, change in changes.items()},
        hasDetailedDiff=bool(changes),
    )


def create(session: Session, request: provider_pb2.CreateRequest) -> tuple[str, Properties]:
    inputs = decode(request.properties)
    if request.preview:
        return "", _preview(inputs)
    plain: Object = reveal(inputs)
    kube, namespace, name = session.kube, plain["namespace"], plain["name"]
    before = records.latest(kube, namespace, name)
    if before and session.options.goes_on and _is_wanted(before, plain):  # installed by a killed plugin
        return identity(namespace, name), _state(inputs, before)
    failure: HelmError | None = None
    try:
        helm(session, options.install_arguments(plain), plain["values"])
    except HelmError as error:
        failure = error
    record = records.latest(kube, namespace, name)
    if failure is not None and (record is None or before is not None):
        raise PluginError(str(failure)) from failure
    if record is None:
        raise PluginError(f"helm reported success, but release {namespace}/{name} has no record in the cluster")
    if failure is None:
        return identity(namespace, name), _state(inputs, record)
    session.engine.log(
        request.urn,
        f'Helm release "{name}" was created but has a failed status. Use the `helm` command to investigate the error, '
        f"correct it, then retry. Reason: {failure}",
        WARNING,
    )
    raise _failed("was created, but", inputs, record, failure) from failure


def update(session: Session, request: provider_pb2.UpdateRequest) -> Properties:
    inputs = decode(request.news)
    if request.preview:
        return _preview(inputs)
    plain: Object = reveal(inputs)
    kube, namespace, name = session.kube, plain["namespace"], plain["name"]
    before = records.latest(kube, namespace, name)
    if plain["lint"]:
        helm(session, ["lint", *options.chart_arguments(plain)[:1]], plain["values"])
    failure: HelmError | None = None
    try:
        helm(session, options.upgrade_arguments(plain), plain["values"])
    except HelmError as error:
        failure = error
    record = records.after(kube, namespace, name, before)
    if record is None:
        raise PluginError(str(failure or f"release {namespace}/{name} has no new record in the cluster")) from failure
    if failure is None:
        return _state(inputs, record)
    raise _failed("", inputs, record, failure) from failure


def read(session: Session, request: provider_pb2.ReadRequest) -> tuple[str, Properties, Properties] | None:
    """Returns the current id, state and inputs, or None if the release is gone. Imports a release without a state."""
    state = decode(request.properties)
    inputs = _inputs(state)
    namespace, name = (reveal(state[key]) for key in ("namespace", "name")) if state else parse_identity(request.id)
    record = records.latest(session.kube, str(namespace), str(name))
    if record is None:
        return None
    if not inputs:
        inputs = options.DEFAULTS | {
            "name": record.name,
            "namespace": record.namespace,
            "chart": record.chart["name"],
            "version": record.chart["version"],
            "values": record.values,
            "timeout": options.DEFAULT_TIMEOUT_SECONDS,
        }
    return request.id, _state(inputs, record), inputs


def delete(session: Session, request: provider_pb2.DeleteRequest) -> None:
    """Deletes the release and waits. A missing release is an error, unless this resumes a failed update."""
    plain: Object = reveal(decode(request.properties))
    if session.client is None:
        raise PluginError(f'can\'t delete Helm Release with unreachable cluster. Reason: "{session.unreachable}"')
    # As in helm_release.go, Delete: this cannot be cancelled, and Helm's output is a warning.
    output = helm(session, options.uninstall_arguments(plain, may_be_gone=session.options.goes_on), cancellable=False)
    if information := output.rpartition('release "')[0].strip():
        session.engine.log(request.urn, f"Helm uninstall returned information: {json.dumps(information)}", WARNING)


def _is_wanted(record: records.Record, plain: Object) -> bool:
    found = (record.status, record.chart["version"], record.values)
    return found == ("deployed", plain["version"], plain["values"])


def _chart_version(session: Session, plain: Object) -> str:
    chart = yaml.safe_load(helm(session, ["show", "chart", *options.chart_arguments(plain)]))
    return str(chart["version"])


def _crds(session: Session, plain: Object) -> list[Object]:
    try:
        rendered = helm(session, options.template_arguments(plain), plain["values"])
    except HelmError:
        return []  # the install reports the error in the values
    texts = [text.removeprefix("---") for text in rendered.split("\n---") if "kind: CustomResourceDefinition" in text]
    return [yaml.load(text, Loader=yaml.CSafeLoader) for text in texts]


def _preview(inputs: Properties) -> Properties:
    return {**inputs, INPUTS: Secret(inputs), "resourceNames": UNKNOWN, "status": UNKNOWN}


def _state(inputs: Properties, record: records.Record) -> Properties:
    chart = record.chart
    values = _merge(reveal(inputs["values"]), record.values)
    outputs = inputs | {
        "version": chart["version"],
        "values": keep_secrets(values, inputs["values"]),
        "resourceNames": record.resource_names(),
        "status": {
            "appVersion": chart.get("appVersion", ""),
            "chart": chart["name"],
            "name": record.name,
            "namespace": record.namespace,
            "revision": record.revision,
            "status": record.status,
            "version": chart["version"],
        },
    }
    return outputs | {INPUTS: Secret(inputs)}


def _failed(what: str, inputs: Properties, record: records.Record, error: HelmError) -> InitializationFailed:
    name = identity(record.namespace, record.name)
    message = (
        f'Helm release "{name}" {what + " " if what else ""}failed to initialize completely. Use Helm CLI to '
        f"investigate: failed to become available within allocated timeout. Error: Helm Release {name}: {error}"
    )
    return InitializationFailed(message, name, _state(inputs, record))


def _inputs(state: Properties) -> Properties:
    inputs = state.get(INPUTS) or {}
    kept: Properties = inputs.value if isinstance(inputs, Secret) else inputs
    return {name: value for name, value in kept.items() if name not in ("checksum", "resourceNames")}


def _union(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        return {name: _union(left.get(name), right.get(name)) for name in left.keys() | right.keys()}
    return left if right is None else right


def _merge(base: Object, over: Object) -> Object:
    merged = copy.deepcopy(base)
    for name, value in over.items():
        below = merged.get(name)
        merged[name] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
