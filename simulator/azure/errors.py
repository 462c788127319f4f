"""Resource Manager's errors: `{"error": {"code", "message", "target", "details"}}` and a status."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True)
class Problem:
    """A property's error. `path` is dotted, as in ARM bodies (`properties.vmSize`)."""

    path: str
    message: str
    code: str = "InvalidParameter"


class ArmError(Exception):
    """The API's error response."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        target: str | None = None,
        details: Iterable[Problem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.target = int(status), code, message, target
        self.details = list(details)
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.target:
            error["target"] = self.target
        if self.details:
            error["details"] = [{"code": d.code, "message": d.message, "target": d.path} for d in self.details]
        return {"error": error}


class IdentityError(ArmError):
    """An error of App Service's managed identity endpoint, in the shape that MSAL expects."""

    def body(self) -> dict[str, Any]:
        return {"statusCode": self.status, "message": self.message, "correlationId": str(uuid.uuid4())}


class LoginError(PermissionError):
    """Entra's error. The message begins with the error code."""

    def __init__(self, status: int, error: str, code: int, message: str) -> None:
        super().__init__(f"AADSTS{code}: {message}")
        self.status = status
        self.body = {"error": error, "error_description": str(self), "error_codes": [code]}


def bad_request(message: str, *, code: str = "BadRequest", target: str | None = None) -> ArmError:
    return ArmError(HTTPStatus.BAD_REQUEST, code, message, target=target)


def conflict(message: str, *, code: str = "OperationNotAllowed") -> ArmError:
    return ArmError(HTTPStatus.CONFLICT, code, message)


def not_allowed(method: str, what: str) -> ArmError:
    return ArmError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", f"{method} is not allowed on {what}.")


def in_progress(what: str) -> ArmError:
    """Returns the error while an operation is pending (AKS's page on this error). azure-native does not retry it."""
    return conflict(
        f"Operation is not allowed: Another {what} is in progress, please wait for it to finish before starting a new "
        "operation. See https://aka.ms/aks-pending-operation for more details"
    )


def invalid(problems: Sequence[Problem]) -> ArmError:
    first = problems[0]
    details = problems if len(problems) > 1 else ()
    message = " ".join(problem.message for problem in problems)
    return ArmError(HTTPStatus.BAD_REQUEST, first.code, message, target=first.path, details=details)


def not_found(resource_type: str, name: str, group: str | None) -> ArmError:
    scope = f" under resource group '{group}'" if group else ""
    return ArmError(
        HTTPStatus.NOT_FOUND,
        "ResourceNotFound",
        f"The Resource '{resource_type}/{name}'{scope} was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )


def group_not_found(group: str) -> ArmError:
    message = f"Resource group '{group}' could not be found."
    return ArmError(HTTPStatus.NOT_FOUND, "ResourceGroupNotFound", message)


def group_being_deleted(group: str) -> ArmError:
    message = f"The resource group '{group}' is in deprovisioning state and cannot perform this operation."
    return conflict(message, code="ResourceGroupBeingDeleted")


def parent_not_found(parent_type: str, parent: str) -> ArmError:
    message = f"Can not perform requested operation on nested resource. Parent resource '{parent}' not found."
    return ArmError(HTTPStatus.NOT_FOUND, "ParentResourceNotFound", message, target=parent_type)
