"""A small Kubernetes REST client: plain dicts, discovery by kind, and the server's unchanged errors.

The emulated provider needs the server's messages (Status bodies, dry run, server-side apply, field managers), which
typed client libraries hide.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from k8s.objects import Object

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_WATCH_S = 240


class ApiError(Exception):
    """An error of the API server. `code` is the HTTP status; `reason` and `message` are from the Status object."""

    def __init__(self, code: int, reason: str, message: str, body: Object | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.body = code, reason, message, body or {}

    @property
    def not_found(self) -> bool:
        return self.code == httpx.codes.NOT_FOUND

    @property
    def conflict(self) -> bool:
        return self.code == httpx.codes.CONFLICT

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed soon: the server is overloaded or cannot reach etcd."""
        return self.code == httpx.codes.TOO_MANY_REQUESTS or self.code >= httpx.codes.INTERNAL_SERVER_ERROR


class NoKindMatch(Exception):
    """A kind that is not served, for example because its CRD is missing."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')
        self.api_version, self.kind = api_version, kind


@dataclass(frozen=True)
class Resource:
    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str | None = None, subresource: str = "") -> str:
        base = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        if self.namespaced and namespace:
            base += f"/namespaces/{namespace}"
        return "/".join(part for part in (base, self.plural, name, subresource) if part)


class KubeClient:
    """A client with one identity. Threads can share it."""

    def __init__(
        self, server: str, verify: ssl.SSLContext | bool, token: str | None = None, user: str | None = None
    ) -> None:
        self.server = server
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"Impersonate-User": user} if user else {}
        # The server of a private cluster has a name, which the proxy in the environment resolves.
        by_name = httpx.URL(server).host != "127.0.0.1"
        self._http = httpx.Client(base_url=server, verify=verify, headers=headers, timeout=60, trust_env=by_name)
        self._resources: dict[tuple[str, str], Resource] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_kubeconfig(cls, kubeconfig: str | Mapping[str, Any]) -> KubeClient:
        """Creates a client from the current context. Supports tokens, certificates (inline or in files) and `as`."""
        config = yaml.safe_load(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        verify = ssl.create_default_context(cadata=_pem(cluster, "certificate-authority"))
        if certificate := _pem(user, "client-certificate"):
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:  # ssl reads keys only from files
                pair.write(certificate + "\n" + (_pem(user, "client-key") or ""))
                pair.flush()
                verify.load_cert_chain(pair.name)
        return cls(cluster["server"], verify, user.get("token"), user.get("as"))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> KubeClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def with_token(self, token: str, verify: ssl.SSLContext) -> KubeClient:
        return KubeClient(self.server, verify, token)

    # -- discovery -----------------------------------------------------------------------------------------------------

    def resource(self, api_version: str, kind: str) -> Resource:
        """Returns a kind's resource. Raises NoKindMatch if the server has no such kind; the next call asks again."""
        found = self._resources.get((api_version, kind))
        if found is None:
            self._discover(api_version)
            found = self._resources.get((api_version, kind))
        if found is None:
            raise NoKindMatch(api_version, kind)
        return found

    def namespaced_kinds(self) -> list[tuple[str, str]]:
        """Returns the preferred API version and kind of all namespaced resources that can be listed and deleted."""
        groups = self.raw("GET", "/apis")["groups"]
        versions = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
        served = [(path.split("/", 2)[2], entry) for path in versions for entry in self.raw("GET", path)["resources"]]
        return [
            (version, entry["kind"])
            for version, entry in served
            if entry["namespaced"] and {"list", "delete"} <= set(entry["verbs"])
        ]

    def _discover(self, api_version: str) -> None:
        prefix = "/api/" if "/" not in api_version else "/apis/"
        try:
            listing = self.raw("GET", prefix + api_version)
        except ApiError as error:
            if error.not_found:
                return
            raise
        with self._lock:
            for entry in listing["resources"]:
                if "/" not in entry["name"]:
                    resource = Resource(api_version, entry["kind"], entry["name"], entry["namespaced"])
                    self._resources[(api_version, entry["kind"])] = resource

    # -- verbs ---------------------------------------------------------------------------------------------------------

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        return self.raw("GET", self.resource(api_version, kind).path(namespace, name))

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """Returns the object, or None if it or its kind does not exist."""
        try:
            return self.get(api_version, kind, name, namespace)
        except NoKindMatch:
            return None
        except ApiError as error:
            if error.not_found:
                return None
            raise

    def list(
        self, api_version: str, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        """Returns objects, with apiVersion and kind, which the server omits in lists."""
        params = {key: value for key, value in {"labelSelector": labels, "fieldSelector": fields}.items() if value}
        answer = self.raw("GET", self.resource(api_version, kind).path(namespace), params=params)
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer["items"]]

    def create(self, obj: Object, *, field_manager: str = "simulator", dry_run: bool = False) -> Object:
        resource, namespace, _ = self._address(obj)
        return self.raw("POST", resource.path(namespace), json=obj, params=_params(field_manager, dry_run))

    def replace(self, obj: Object, *, field_manager: str = "simulator", dry_run: bool = False) -> Object:
        resource, namespace, name = self._address(obj)
        return self.raw("PUT", resource.path(namespace, name), json=obj, params=_params(field_manager, dry_run))

    def apply(
        self, obj: Object, *, field_manager: str = "simulator", force: bool = False, dry_run: bool = False
    ) -> Object:
        """Applies server-side. A conflict with another manager is an ApiError with code 409 unless `force`."""
        resource, namespace, name = self._address(obj)
        params = _params(field_manager, dry_run) | ({"force": "true"} if force else {})
        return self._patch(resource.path(namespace, name), obj, APPLY_PATCH, params)

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None,
        body: Any,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
        field_manager: str = "simulator",
    ) -> Object:
        path = self.resource(api_version, kind).path(namespace, name, subresource)
        return self._patch(path, body, content_type, _params(field_manager))

    def delete(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> Object:
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return self.raw("DELETE", self.resource(api_version, kind).path(namespace, name), json=options)

    def watch(self, api_version: str, kind: str, *, resource_version: str) -> Iterator[tuple[str, Object]]:
        """Yields (type, object) of all namespaces, until the server ends the watch or the version is too old."""
        params: dict[str, Any] = {"watch": "true", "timeoutSeconds": _WATCH_S, "allowWatchBookmarks": "true"}
        params["resourceVersion"] = resource_version
        path = self.resource(api_version, kind).path(None)
        with self._http.stream("GET", path, params=params, timeout=_WATCH_S + 30) as response:
            if response.status_code != httpx.codes.OK:
                response.read()
                raise _error(response)
            for line in response.iter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    if status.get("code") == httpx.codes.GONE:
                        return
                    raise ApiError(status.get("code", 500), status.get("reason", ""), status.get("message", ""), status)
                yield event["type"], event["object"]

    def raw(self, method: str, path: str, *, json: Any = None, params: Mapping[str, Any] | None = None) -> Object:
        response = self._http.request(method, path, json=json, params=params)
        if response.is_error:
            raise _error(response)
        answer: Object = response.json()
        return answer

    def text(self, path: str, params: Mapping[str, Any] | None = None) -> str:
        """Returns the text at a path, such as `/readyz` or a pod's log."""
        response = self._http.get(path, params=params)
        if response.is_error:
            raise _error(response)
        return response.text

    def _patch(self, path: str, body: Any, content_type: str, params: Mapping[str, str]) -> Object:
        headers = {"Content-Type": content_type}
        response = self._http.patch(path, content=json.dumps(body), headers=headers, params=params)
        if response.is_error:
            raise _error(response)
        answer: Object = response.json()
        return answer

    def _address(self, obj: Object) -> tuple[Resource, str | None, str]:
        metadata = obj.get("metadata", {})
        resource = self.resource(obj["apiVersion"], obj["kind"])
        namespace = metadata.get("namespace") or ("default" if resource.namespaced else None)
        return resource, namespace, metadata.get("name", "")


def ignore_missing(call: Callable[[], object]) -> None:
    try:
        call()
    except ApiError as error:
        if not error.not_found:
            raise


def _params(field_manager: str, dry_run: bool = False) -> dict[str, str]:
    return {"fieldManager": field_manager} | ({"dryRun": "All"} if dry_run else {})


def _error(response: httpx.Response) -> ApiError:
    try:
        body = response.json()
    except ValueError:
        return ApiError(response.status_code, response.reason_phrase, response.text.strip())
    return ApiError(response.status_code, body.get("reason", ""), body.get("message", response.text), body)


def _named(entries: list[Object], name: str) -> Object:
    return next(entry for entry in entries if entry["name"] == name)


def _pem(section: Mapping[str, Any], key: str) -> str | None:
    if data := section.get(f"{key}-data"):
        return base64.b64decode(data).decode()
    return Path(section[key]).read_text() if section.get(key) else None
