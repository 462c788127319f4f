"""Blob storage of a stack: the account, its containers, and the shared access signatures (SAS) that open them."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from config.base import EMPTY_IS_UNSET, PLAIN_DIGITS, Count, Model, Text, unfit
from config.blobfuse import profiles
from config.global_names import global_name
from config.names import Names
from config.near import near

MAX_ACCOUNT_NAME = 24
MAX_DAYS = 365
MAX_DELEGATION_DAYS = 7
"""Azure: a key of an Entra login, and what it signs, lives no longer."""
FIRST_ROTATION = "1"
UPLOAD_PERMISSIONS = "rcwl"
"""Of the SAS that fills a container: see what is there, write what is not."""

ContainerName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9](-?[a-z0-9]){2,62}$"),
    Field(description="3 to 63 lower-case letters, digits and single hyphens"),
]
AccountName = Annotated[
    str,
    StringConstraints(pattern=rf"^[a-z0-9]{{3,{MAX_ACCOUNT_NAME}}}$"),
    Field(description=f"3 to {MAX_ACCOUNT_NAME} lower-case letters and digits, a name that nobody else in Azure has"),
]
SasKind = Literal["service", "user-delegation"]


class ContainerSettings(Model):
    """One blob container, mounted by workloads through a SAS that can do no more than `permissions`."""

    sas: SasKind = "service"
    """Signed with the account's key, or with a key of the deployer's Entra login (seven days at most)."""
    permissions: Annotated[
        str,
        StringConstraints(pattern=r"^ra?c?w?d?lm?p?$"),
        Field(description="r and l, without which nothing mounts, any of acwd between, and of mp behind: rl, racwdlmp"),
    ] = "rl"
    """Of the SAS that mounts use: read, add, create, write, delete, list; and move and permissions (chmod).

    Writing to a hierarchical namespace takes the last two: there blobfuse2 renames by Path Create, and sets the
    permissions of each file that it makes by Path Update (azure-storage-fuse 74098e3, component/azstorage/datalake.go:
    RenameDirectory, CreateFile).
    """
    days: Annotated[int, Field(ge=1, le=MAX_DAYS), PLAIN_DIGITS] = 7
    """How long a SAS lasts, counted from its rotation."""
    size_gib: Count = 1024
    """Capacity that the volume states; blob storage does not enforce it."""
    profile: Annotated[Text, Field(json_schema_extra={"enum": list(profiles())})] = "sequential"
    """How blobfuse2 reads it: an entry of config/blobfuse.yaml."""
    upload: bool = False
    """Issue a second SAS (`rcwl`) for jobs that fill the container."""

    @field_validator("profile")
    @classmethod
    def _profile_is_known(cls, value: str) -> str:
        if value not in profiles():
            raise unfit(f"is {value!r}, an unknown profile", near(value, profiles()) or list(profiles()))
        return value

    @model_validator(mode="after")
    def _days_can_be_signed(self) -> ContainerSettings:
        if self.days > self.most_days:
            what = f"is {self.days}, but a {self.sas} SAS lasts {self.most_days} days at most"
            may = f"1 to {self.most_days}, or sas: service with up to {MAX_DAYS}"
            raise unfit(what, self.most_days, "days", allowed=may)
        return self

    @property
    def most_days(self) -> int:
        """The longest that a SAS of its kind can last."""
        return MAX_DELEGATION_DAYS if self.sas == "user-delegation" else MAX_DAYS

    @property
    def read_only(self) -> bool:
        """Whether the SAS of mounts can change nothing."""
        return not set(self.permissions) & set("acwdmp")


class StorageSettings(Model):
    """The storage account; without containers there is none."""

    account_name: Annotated[AccountName | None, EMPTY_IS_UNSET] = None
    """Globally unique; by default derived from stack and subscription."""
    sku: Literal["Standard_LRS", "Standard_ZRS", "Premium_LRS", "Premium_ZRS"] = "Standard_LRS"
    hierarchical_namespace: bool = True
    """Data Lake Gen2, where a folder is renamed at once and not blob by blob; cannot be changed later."""
    protect: bool = True
    """Refuse to delete or replace account and containers."""
    driver: Literal["addon", "chart", "none"] = "addon"
    """The blob CSI driver as AKS's own add-on, or from its Helm chart, never both; or `none` of this program's.

    From `chart` to `addon` one goes by `none`, and a `pulumi up` in between: they have the same names, and Pulumi would
    turn the add-on on before it takes the chart away.
    """
    rotation: Annotated[Text, BeforeValidator(lambda value: FIRST_ROTATION if value == "" else value)] = FIRST_ROTATION
    """Any text; changing it issues new SAS for all containers, whose expiry moves with it."""
    containers: dict[ContainerName, ContainerSettings] = {}

    def full_name(self, names: Names, subscription_id: str) -> str:
        """The account's name in ARM."""
        return self.account_name or global_name(names, subscription_id, MAX_ACCOUNT_NAME)

    def needs(self, driver: Literal["addon", "chart"]) -> bool:
        """Whether containers are mounted by this driver."""
        return self.driver == driver and bool(self.containers)

    def uses(self, kind: SasKind) -> bool:
        """Whether any container has SAS of this kind."""
        return any(container.sas == kind for container in self.containers.values())

    def generation(self, container: str) -> str:
        """A few characters that change with all that makes up a mount of the container, its SAS before all.

        They are in the names of what mounts it. A node keeps a mount, with the SAS and the options that it was made
        with, for as long as any pod there uses it (blob-csi-driver, NodeStageVolume): others reach it only as another
        volume. Nor can a claim be changed once it is there.
        """
        settings = self.containers[container].model_dump(exclude={"upload"})
        mount = (self.rotation, self.hierarchical_namespace, settings)
        return hashlib.sha256(repr(mount).encode()).hexdigest()[:4]


def next_rotation(rotation: str) -> str:
    """Another text than `rotation`: the number at its end raised by one, or one put there."""
    match = re.fullmatch(r"(.*?)(\d+)", rotation)
    return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}}" if match else f"{rotation}-2"
