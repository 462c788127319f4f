"""Blob storage of a stack: accounts, their containers, and what opens them: a SAS, or the identity of who mounts."""

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
"""So that a name made of it has room for the stack's."""
MAX_CLASS_NAME = 63
MAX_DAYS = 365
MAX_DELEGATION_DAYS = 7
"""Azure: a key of an Entra login, and what it signs, lives no longer."""
FIRST_ROTATION = "1"
UPLOAD_PERMISSIONS = "rcwl"
"""Of the SAS that fills a container: see what is there, write what is not."""

ContainerName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9](-?[a-z0-9]){2,62}$"),
    may_be("3 to 63 lower-case letters, digits and single hyphens"),
]
AccountName = Annotated[
    str,
    StringConstraints(pattern=rf"^[a-z0-9]{{3,{MAX_ACCOUNT_NAME}}}$"),
    may_be(f"3 to {MAX_ACCOUNT_NAME} lower-case letters and digits, a name that nobody else in Azure has"),
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
"""Of a StorageClass; Kubernetes allows more characters, but claims are called after it."""
AccountSku = Literal["Standard_LRS", "Standard_ZRS", "Premium_LRS", "Premium_ZRS"]
SasKind = Literal["service", "user-delegation"]
SharedFiles = Literal["smb", "nfs", "none"]
KeptOn = SharedFiles | Literal["class"]
"""What shared files are on; `class`: on volumes of a StorageClass of others than this module."""
SHARED_CLASS = "shared-files"
"""The StorageClass of `nfs`, which is the whole cluster's."""
_FILES_KEY = "0files"
"""It begins as no key of an account does, so that no other has a name that is made of it."""


def _is_of_files(name: str) -> str:
    """Refuses a StorageClass that is plainly not there, or whose volumes nodes do not share as files."""
    known, files = aks_classes(), list(aks_classes().files)
    if name in known.disks:
        raise unfit(f"is {name}, AKS's class of disks, each of which is on one node at a time", files[0])
    if name in known.blobs:
        raise unfit(f"is {name}, AKS's class of blobs, in which no file can be locked", files[0])
    if likely := mistyped(name, files):
        raise unfit(f"is {name!r}, and AKS has no such class{hint(likely)}", likely[0])
    return name


SharedClass = Annotated[
    ClassName,
    may_be(f"the name of a StorageClass of files that is there, as in {aks_classes().files[0]}"),
    AfterValidator(_is_of_files),
]


class ContainerSettings(Model):
    """One blob container, mounted by workloads that can do no more there than `permissions`."""

    sas: Annotated[SasKind, protects(["user-delegation", "service"])] = "service"
    """`service`, signed with the account's key, or `user-delegation`: with an Entra login, for 7 days at most."""
    permissions: Annotated[
        str,
        StringConstraints(pattern=r"^ra?c?w?d?lm?p?$"),
        may_be("r and l, without which nothing mounts, any of acwd between, and of mp behind: rl, racwdlmp"),
        protects("letters"),
    ] = "rl"
    """Of the SAS that mounts use, of `racwdlmp`: read, add, create, write, delete, list, move, permissions; writing to
    a hierarchical namespace needs the last two. With `storage.auth` `identity`, `rl` makes readers, and what has both
    `w` and `d` contributors.

    There blobfuse2 renames by Path Create, and sets the permissions of each file that it makes by Path Update
    (azure-storage-fuse 74098e3, component/azstorage/datalake.go: RenameDirectory, CreateFile).
    """
    days: Annotated[int, Field(ge=1, le=MAX_DAYS), PLAIN_DIGITS, protects("limit")] = 7
    """How long a SAS lasts from its rotation."""
    size_gib: Count = 1024
    """Capacity that the volume states.

    Blob storage does not enforce it.
    """
    profile: Annotated[Text, Field(json_schema_extra={"enum": list(profiles())})] = "sequential"
    """How blobfuse2 reads and writes: an entry of `config/data/blobfuse.yaml`; `checkpoints` where several nodes must
    see at once what one has made.
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
        """The longest that a SAS of its kind can last."""
        return MAX_DELEGATION_DAYS if self.sas == "user-delegation" else MAX_DAYS

    @property
    def read_only(self) -> bool:
        """Whether mounts can change nothing."""
        return not set(self.permissions) & set("acwdmp")

    @property
    def fits_a_role(self) -> bool:
        """Whether one of Azure's roles gives what `permissions` say: those that let write let delete too."""
        return self.read_only or set("wd") <= set(self.permissions)


class AccountSettings(Model):
    """A storage account; without containers there is none."""

    auth: Annotated[Literal["sas", "identity"], protects(["identity", "sas"])] = "sas"
    """What opens containers for mounts: `sas`, signed as each container's `sas` says, or `identity`: that of the
    workloads' service account, with no secret, no expiry and no shared keys (preview of the blob CSI driver).
    """
    account_name: Annotated[AccountName | None, EMPTY_IS_UNSET] = None
    """The storage account's name, unique in all of Azure; by default from project, stack and subscription."""
    sku: AccountSku = "Standard_LRS"
    """`Standard_LRS`, `Standard_ZRS`, `Premium_LRS` or `Premium_ZRS`. An account keeps its own."""
    hierarchical_namespace: bool = True
    """Data Lake Gen2, where a folder is renamed at once; another value is another account, so a stack whose account has
    none is told the line that keeps it: `false`.
    """
    protect: Annotated[bool, protects([True, False])] = True
    """Refuse to delete or replace the account, its containers, and a cluster with claims that keep files."""
    rotation: Annotated[Text, BeforeValidator(lambda value: FIRST_ROTATION if value == "" else value)] = FIRST_ROTATION
    """Any text; another one issues new SAS for all its containers: jobs that mount them are replaced, and start again.

    Their expiry moves with it.
    """
    containers: dict[ContainerName, ContainerSettings] = {}
    """Blob containers, by name."""

    def uses(self, kind: SasKind) -> bool:
        """Whether any container has SAS of this kind."""
        return self.auth == "sas" and any(container.sas == kind for container in self.containers.values())


def account_path(key: str) -> Path:
    """What stands before an account's keys in the stack file."""
    return ("storage", "accounts", key) if key else ("storage",)


@dataclass(frozen=True)
class Account:
    """A storage account among those of a stack."""

    key: str
    """Its key in `storage.accounts`; empty for the account of `storage` itself."""
    settings: AccountSettings

    @property
    def path(self) -> Path:
        """What stands before its keys in the stack file."""
        return account_path(self.key)

    def path_of(self, container: str) -> Path:
        """What stands before the keys of a container."""
        return (*self.path, "containers", container)

    def named(self, name: str) -> str:
        """A name that no other account's resource of that kind has."""
        return f"{name}-{self.key}" if self.key else name

    def full_name(self, names: Names, subscription_id: str) -> str:
        """Its name in ARM."""
        return self.settings.account_name or global_name(names, subscription_id, MAX_ACCOUNT_NAME, self.key)

    def generation(self, container: str) -> str:
        """A few characters that change with all that makes up a mount of the container, its SAS before all.

        They are in the names of what mounts it. A node keeps a mount, with the SAS and the options that it was made
        with, for as long as any pod there uses it (blob-csi-driver, NodeStageVolume): others reach it only as another
        volume. Nor can a claim be changed once it is there.
        """
        account = self.settings
        settings = account.containers[container].model_dump(exclude={"upload"})
        mount: tuple[object, ...] = (account.rotation, account.hierarchical_namespace, settings)
        if account.auth == "identity":  # nothing before it: what SAS have is as it was
            mount = (account.auth, *mount)
        if self.key:  # nor before this: what the one account has is as it was
            mount = (self.key, *mount)
        return hashlib.sha256(repr(mount).encode()).hexdigest()[:4]


class StorageSettings(AccountSettings):
    """Blob storage: an account by its own keys, others beside it, and the driver that mounts their containers."""

    accounts: dict[AccountKey, AccountSettings] = {}
    """More accounts by key, each with the keys of `storage` above: its own containers, and what opens these."""
    driver: Literal["addon", "chart", "none"] = "addon"
    """The blob CSI driver as AKS's add-on (`addon`), from its `chart`, or `none`: between the chart and the add-on, or
    with a driver of your own.

    The two have the same names, and Pulumi would turn the add-on on before it takes the chart away.
    """

    shared_files: SharedFiles | None = None
    """What workloads keep shared files on: `smb`, Azure Files in an account with a public address, which AKS makes and
    workloads have a class for; `nfs`, Azure Files in an account of the stack's, which is reached from a network of
    one's own alone; `none`. By default the class of `operators.nfsSubdirExternalProvisioner` where it is on, else
    `smb`, with `network.private` `none`. Another value is other shares: files are not copied.
    """
    shared_class: Annotated[SharedClass | None, EMPTY_IS_UNSET] = None
    """In its place, a StorageClass of shared files that is there: one of AKS's, or one that you have made. A preview
    fails that does not find yours in the cluster.
    """

    def files_account(self, names: Names, subscription_id: str) -> str:
        """The name in ARM of the account of `nfs`."""
        return global_name(names, subscription_id, MAX_ACCOUNT_NAME, _FILES_KEY)

    def all_accounts(self) -> list[Account]:
        """The account of `storage` itself, then the others by key."""
        return [Account("", self), *(Account(key, each) for key, each in sorted(self.accounts.items()))]

    def made_accounts(self) -> list[Account]:
        """Those that have containers."""
        return [account for account in self.all_accounts() if account.settings.containers]

    def by_identity(self) -> list[Account]:
        """The accounts whose containers identities open."""
        return [account for account in self.all_accounts() if account.settings.auth == "identity"]

    def by_container(self) -> dict[str, Account]:
        """The account that each container is in, by its name, which no two have (config/rules/accounts.py)."""
        return {name: account for account in self.all_accounts() for name in account.settings.containers}

    def next_account(self) -> Account:
        """Where a container goes that is in none yet."""
        return next(iter(self.made_accounts()), self.all_accounts()[0])

    def needs(self, driver: Literal["addon", "chart"]) -> bool:
        """Whether containers are mounted by this driver."""
        return self.driver == driver and bool(self.made_accounts())


def next_rotation(rotation: str) -> str:
    """Another text than `rotation`: the number at its end raised by one, or one put there."""
    match = re.fullmatch(r"(.*?)(\d+)", rotation)
    return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}}" if match else f"{rotation}-2"
