"""Rejects secrets in plain text in the stack file, which is committed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pydantic import SecretStr
from pydantic.alias_generators import to_camel

from config.problems.errors import Problem
from config.problems.fixes import Path, say, secret_command
from config.schema.models import Settings
from config.schema.operators import OperatorSettings
from config.schema.workload import WorkloadOptions

_LOOKS = "looks like a secret in plain text; readers of the stack file or the pod know it, so choose a new secret"
_NAMES = re.compile(
    "(?:^|-)(?:password|passwd|pass|pwd|passphrase|token|credential|(?:client|app|shared|session|env)-secret"
    "|(?:api|access|account|secret|private|encryption|signing|routing|service|integration)-key)$"
)
_REFERENCES = re.compile("(?:^|-)(?:existing|ref|mount|automount|file|path)(?:-|$)")
_FORMS = re.compile(
    r"hooks\.slack\.com/|webhook\.office\.com/|discord(?:app)?\.com/api/webhooks|\b(?:hf|ghp|glpat|xox[abp])[-_]\w{10,}"
    r"|AccountKey=|[?&]sig=|://[^\s/:@]+:[^\s/@]+@|PRIVATE KEY-----"
)
_LONGEST = 10_000


def plain_secrets(options: Mapping[str, WorkloadOptions], *, encrypted: bool) -> Iterator[Problem]:
    """Yields a problem for each secret option of these workloads, unless `workloadOptions` is `encrypted`: if one value
    in it is encrypted, Pulumi marks the whole key as secret.
    """
    for workload, chosen in options.items() if not encrypted else ():
        for name, field in type(chosen).model_fields.items():
            if isinstance(getattr(chosen, name), SecretStr):
                yield plain_secret(("workloadOptions", workload, field.alias or name))


def plain_secret(path: Path) -> Problem:
    what = "is in plain text in the stack file; readers of the file know the secret, so choose a new secret"
    return Problem(path, what, "an encrypted value", secret_command(path), shows_value=False)


def unset_secret(path: Path, what: str, allowed: str) -> Problem:
    return Problem(path, what, allowed, secret_command(path), shows_value=False)


def plain_values(settings: Settings, *, encrypted: bool) -> Iterator[str]:
    """Yields a warning, without the value, for each operator setting or pod value that looks like a secret.

    Operator settings are skipped if Pulumi marks `operators` as `encrypted`.
    """
    for key, operator in settings.operators if not (encrypted or settings.shared_platform) else ():
        chosen = operator.model_dump(by_alias=True) if isinstance(operator, OperatorSettings) else {}
        for path in _secrets(chosen, ("operators", to_camel(key))):
            encrypt = secret_command(path).text(settings.stack)
            how = f"refer to a Kubernetes Secret, if the chart can read one, or encrypt the value: {encrypt}"
            yield Problem(path, _LOOKS, "the name of a Secret, or an encrypted value", say(how)).text(settings.stack)
    for name, placement in settings.placements.items():
        for path in _secrets(placement.options.pod_overrides, ("workloadOptions", name, "podOverrides")):
            how = "create a Kubernetes Secret (kubectl create secret generic), and use it in valueFrom.secretKeyRef"
            yield Problem(path, _LOOKS, "a reference to a Secret", say(how)).text(settings.stack)


def _secrets(value: object, path: Path, name: str = "") -> Iterator[Path]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            called = f"env-{value['name']}" if key == "value" and "name" in value else str(key)
            yield from _secrets(below, (*path, key), called)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _secrets(below, (*path, index), name)
    elif isinstance(value, str) and value[:1] not in ("", "$", "/"):
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "-", name[:_LONGEST]).lower()
        named = _NAMES.search(words) and not _REFERENCES.search(words)
        if named or _FORMS.search(value[:_LONGEST]):
            yield path
