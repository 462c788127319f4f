"""A stack's blob storage: accounts, containers, and access by SAS or the workload's identity."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, field_validator, model_validator

from config.data.blobfuse import profiles
from config.data.near import hint, mistyped, near
from config.data.storage_classes import aks_classes
from config.problems.fixes import Path
from config.schema.base import EMPTY_IS_UNSET, PLAIN_DIGITS, Count, Model, Text, may_be, protects, unfit
from config.schema.names import Names, global_name

MAX_ACCOUNT_NAME = 24
MAX_ACCOUNT_KEY = 10
"""The longest key of an account. The account's name includes the key, and needs characters for the stack's name."""
MAX_CLASS_NAME = 63
MAX_DAYS = 365
MAX_DELEGATION_DAYS = 7
"""Azure's limit of days for user delegation keys, and for SAS that are signed with them."""
FIRST_ROTATION = "1"
UPLOAD_PERMISSIONS = "rcwl"
"""Permissions of the SAS for jobs that fill a container: read existing data, create missing data."""

ContainerName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9](-?[a-z0-9]){2,62}$"),
    may_be("3 to 63 lower-case letters, digits and single hyphens"),
]
AccountName = Annotated[
    str,
    StringConstraints(pattern=rf"^[a-z0-9]{{3,{MAX_ACCOUNT_NAME}}}$"),
    may_be(f"3 to {MAX_ACCOUNT_NAME} lower-case letters and digits, unique in Azure"),
]
AccountKey = Annotated[
    str,
    StringConstraints(pattern=rf"^[a-z][a-z0-9]{{0,{MAX_ACCOUNT_KEY - 1}}}$"),
    may_be(f"1 to {MAX_ACCOUNT_KEY} lower-case letters and digits, the first a letter"),
]
ClassName = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$", max_length=MAX_CLASS_NAME
    ),
]
"""The name of a StorageClass. Kubernetes allows more characters, but names of claims contain it."""
AccountSku = Literal["Standard_LRS", "Standard_ZRS", "Premium_LRS", "Premium_ZRS"]
SasKind = Literal["service", "user-delegation"]
SharedFiles = Literal["smb", "nfs", "none"]
KeptOn = SharedFiles | Literal["class"]
SHARED_CLASS = "shared-files"
"""The StorageClass for `nfs`."""
_FILES_KEY = "0files"
"""The key in the name of the account for shared files. Keys of other accounts cannot begin with a digit."""


def _is_of_files(name: str) -> str:
    known, files = aks_classes(), list(aks_classes().files)
    if name in known.disks:
        raise unfit(f"is {name}, AKS's class of disks, which only one node at a time can mount", files[0])
    if name in known.blobs:
        raise unfit(f"is {name}, AKS's class of blobs, which do not support file locks", files[0])
    if likely := mistyped(name, files):
        raise unfit(f"is {name!r}, which is not a class of AKS{hint(likely)}", likely[0])
    return name


SharedClass = Annotated[
    ClassName,
    may_be(f"the name of an existing StorageClass of files, as in {aks_classes().files[0]}"),
    AfterValidator(_is_of_files),
]


class ContainerSettings(Model):
    """A blob container, which workloads mount with `permissions`."""

    sas: Annotated[SasKind, protects(["user-delegation", "service"])] = "service"
    """How the SAS is signed: `service`, with the account key; or `user-delegation`, with an Entra login, for 7 days at
    most.
    """
    permissions: Annotated[
        str,
        StringConstraints(pattern=r"^ra?c?w?d?lm?p?$"),
        may_be("r, then any of acwd, then l, then any of mp, as in rl or racwdlmp (mounts need r and l)"),
        protects("letters"),
    ] = "rl"
    """Permissions of the SAS for mounts, from `racwdlmp`: read, add, create, write, delete, list, move, permissions.
    Writing to a hierarchical namespace needs `m` and `p`. With `storage.auth` `identity`, `rl` assigns a reader role;
    permissions with both `w` and `d` assign a contributor role.

    With a hierarchical namespace, blobfuse2 renames with Path Create and sets the permissions of each new file with
    Path Update (azure-storage-fuse 74098e3, component/azstorage/datalake.go: RenameDirectory, CreateFile).
    """
    days: Annotated[int, Field(ge=1, le=MAX_DAYS), PLAIN_DIGITS, protects("limit")] = 7
    """Lifetime of a SAS in days, from its rotation."""
    size_gib: Count = 1024
    """Capacity that the volume reports. Blob storage does not enforce it."""
    profile: Annotated[Text, Field(json_schema_extra={"enum": list(profiles())})] = "sequential"
    """Read and write settings of blobfuse2: an entry of `config/data/blobfuse.yaml`. Use `checkpoints` if several nodes
    must see new files at once.
    """
    upload: Annotated[bool, protects([False, True])] = False
    """Issue a second SAS (`rcwl`) for jobs that fill the container."""

    @field_validator("profile")
    @classmethod
    def _profile_is_known(cls, value: str) -> str:
        if value not in profiles():
            raise unfit(f"is {value!r}, an unknown profile", next(iter(near(value, profiles())), None))
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
        return MAX_DELEGATION_DAYS if self.sas == "user-delegation" else MAX_DAYS

    @property
    def read_only(self) -> bool:
        return not set(self.permissions) & set("acwdmp")

    @property
    def fits_a_role(self) -> bool:
        """Whether an Azure role matches `permissions`: roles with write access also allow deletion."""
        return self.read_only or set("wd") <= set(self.permissions)


class AccountSettings(Model):
    """A storage account; created only if it has containers."""

    auth: Annotated[Literal["sas", "identity"], protects(["identity", "sas"])] = "sas"
    """Authentication of mounts: `sas` (each container's `sas` sets how it is signed); or `identity`, the identity of
    the workloads' service account, without secret, expiry or shared keys (preview of the blob CSI driver).
    """
    account_name: Annotated[AccountName | None, EMPTY_IS_UNSET] = None
    """Globally unique name of the storage account; by default derived from project, stack and subscription."""
    sku: AccountSku = "Standard_LRS"
    """`Standard_LRS`, `Standard_ZRS`, `Premium_LRS` or `Premium_ZRS`. An existing account keeps its SKU."""
    hierarchical_namespace: bool = True
    """Data Lake Gen2 (atomic renames of folders). A change would create a new account: if the existing account has no
    hierarchical namespace, the program prints the setting that keeps the account (`false`).
    """
    protect: Annotated[bool, protects([True, False])] = True
    """Prevent deletion and replacement of the account, its containers, and a cluster with claims that keep files."""
    rotation: Annotated[Text, BeforeValidator(lambda value: FIRST_ROTATION if value == "" else value)] = FIRST_ROTATION
    """Any text. A new text issues new SAS for all containers and restarts their expiry. Jobs that mount these
    containers are replaced and start again.
    """
    containers: dict[ContainerName, ContainerSettings] = {}
    """Blob containers, by name."""

    def uses(self, kind: SasKind) -> bool:
        return self.auth == "sas" and any(container.sas == kind for container in self.containers.values())


def account_path(key: str) -> Path:
    return ("storage", "accounts", key) if key else ("storage",)


@dataclass(frozen=True)
class Account:
    """A storage account of a stack."""

    key: str
    """The key in `storage.accounts`; empty for the account of `storage` itself."""
    settings: AccountSettings

    @property
    def path(self) -> Path:
        return account_path(self.key)

    def path_of(self, container: str) -> Path:
        return (*self.path, "containers", container)

    def named(self, name: str) -> str:
        return f"{name}-{self.key}" if self.key else name

    def full_name(self, names: Names, subscription_id: str) -> str:
        return self.settings.account_name or global_name(names, subscription_id, MAX_ACCOUNT_NAME, self.key)

    def generation(self, container: str) -> str:
        """Returns a short hash of everything that defines a mount of the container, such as its SAS.

        Names of volumes and claims contain it: while any pod of a node uses a mount, the node keeps its SAS and options
        (blob-csi-driver, NodeStageVolume), and claims are immutable.
        """
        account = self.settings
        settings = account.containers[container].model_dump(exclude={"upload"})
        mount: tuple[object, ...] = (account.rotation, account.hierarchical_namespace, settings)
        if account.auth == "identity":  # keep the hashes of SAS mounts unchanged
            mount = (account.auth, *mount)
        if self.key:  # keep the hashes of the single account unchanged
            mount = (self.key, *mount)
        return hashlib.sha256(repr(mount).encode()).hexdigest()[:4]


class StorageSettings(AccountSettings):
    """Blob storage: an account with its own keys, additional accounts, and the CSI driver for their containers."""

    accounts: dict[AccountKey, AccountSettings] = {}
    """Additional accounts by key. Each has the same keys as `storage`, with its own containers and authentication."""
    driver: Literal["addon", "chart", "none"] = "addon"
    """Source of the blob CSI driver: AKS's add-on (`addon`), the Helm `chart`, or `none`. Use `none` with your own
    driver, and for one update when you switch between chart and add-on.

    Chart and add-on use the same object names, and Pulumi would enable the add-on before it deletes the chart.
    """

    shared_files: SharedFiles | None = None
    """Storage of the workloads' shared files. `smb`: Azure Files in a public account, which AKS creates for the
    workloads' own StorageClass. `nfs`: Azure Files in an account of the stack, reachable only from a custom network.
    `none`: no shared files. The default is the class of `operators.nfsSubdirExternalProvisioner` if that operator is
    enabled, else `smb`, or `none` with `network.private`. A change creates new shares and does not copy files.
    """
    shared_class: Annotated[SharedClass | None, EMPTY_IS_UNSET] = None
    """An existing StorageClass for shared files, instead of `sharedFiles`: a class of AKS, or your own class. Previews
    fail if the cluster does not have it.
    """

    def files_account(self, names: Names, subscription_id: str) -> str:
        return global_name(names, subscription_id, MAX_ACCOUNT_NAME, _FILES_KEY)

    def all_accounts(self) -> list[Account]:
        return [Account("", self), *(Account(key, each) for key, each in sorted(self.accounts.items()))]

    def made_accounts(self) -> list[Account]:
        return [account for account in self.all_accounts() if account.settings.containers]

    def by_identity(self) -> list[Account]:
        return [account for account in self.all_accounts() if account.settings.auth == "identity"]

    def by_container(self) -> dict[str, Account]:
        """Returns the account of each container, by its name. Container names are unique (config/rules/storage.py)."""
        return {name: account for account in self.all_accounts() for name in account.settings.containers}

    def next_account(self) -> Account:
        return next(iter(self.made_accounts()), self.all_accounts()[0])

    def needs(self, driver: Literal["addon", "chart"]) -> bool:
        return self.driver == driver and bool(self.made_accounts())


def next_rotation(rotation: str) -> str:
    match = re.fullmatch(r"(.*?)(\d+)", rotation)
    return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}}" if match else f"{rotation}-2"
