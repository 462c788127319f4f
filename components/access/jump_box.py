"""Access to a network that the stack creates: a machine in it, and a Bastion for logins to the machine.

The machine has no public address or password. Every user of the machine deploys with the machine's identity.
"""

from __future__ import annotations

import pulumi
from pulumi_azure_native import authorization, compute, managedidentity
from pulumi_azure_native import network as azure

from components._base import Component
from components.azure import roles
from components.azure.cluster import Cluster
from components.azure.network import Network, public_address
from components.azure.resource_group import ResourceGroup
from components.azure.roles import subscription_id
from config.data import jump_box as facts
from config.schema.jump_box import DISK_TYPE, USER, JumpBoxSettings
from config.schema.models import Settings
from config.schema.network import BASTION, JUMP_BOX

_TIMEOUTS = pulumi.CustomTimeouts(create="40m", delete="40m")


class JumpBox(Component):
    deployer: roles.Principal

    def __init__(
        self,
        name: str,
        settings: Settings,
        chosen: JumpBoxSettings,
        network: Network,
        group: ResourceGroup,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self._settings, self._chosen = settings, chosen
        self._network, self._group = network, group
        self._name = jump_box_name(settings)
        identity = managedidentity.UserAssignedIdentity(
            "jump-box-identity",
            resource_name_=self._name,
            resource_group_name=group.name,
            location=settings.location,
            opts=self.child(),
        )
        self.deployer = roles.Principal(object_id=identity.principal_id, kind="ServicePrincipal")
        self._rights()
        self._machine(identity.id)
        self._bastion()
        self.register_outputs({"identity": identity.id})

    def admin_of(self, cluster: Cluster) -> authorization.RoleAssignment:
        return roles.assign(
            "jump-box-cluster-admin",
            role=roles.RBAC_CLUSTER_ADMIN,
            scope=cluster.id,
            principal=self.deployer,
            parent=self,
        )

    def _rights(self) -> None:
        scope = self._group.id
        roles.assign("jump-box-contributor", role=roles.CONTRIBUTOR, scope=scope, principal=self.deployer, parent=self)
        roles.assign(
            "jump-box-roles",
            role=roles.RBAC_ADMINISTRATOR,
            scope=scope,
            principal=self.deployer,
            parent=self,
            condition=roles.only(roles.ASSIGNED_ROLES),
        )

    def _machine(self, identity: pulumi.Input[str]) -> None:
        interface = azure.NetworkInterface(
            "jump-box-interface",
            network_interface_name=self._name,
            resource_group_name=self._group.name,
            location=self._settings.location,
            ip_configurations=[
                azure.NetworkInterfaceIPConfigurationArgs(
                    name="private",
                    subnet=azure.SubnetArgs(id=self._network.subnet(JUMP_BOX)),
                    private_ip_allocation_method=azure.IPAllocationMethod.DYNAMIC,
                )
            ],
            opts=self.child(),
        )
        compute.VirtualMachine(
            "jump-box",
            vm_name=self._name,
            resource_group_name=self._group.name,
            location=self._settings.location,
            hardware_profile=compute.HardwareProfileArgs(vm_size=self._chosen.vm_sku),
            identity=compute.VirtualMachineIdentityArgs(
                type=compute.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[identity]
            ),
            network_profile=compute.NetworkProfileArgs(
                network_interfaces=[compute.NetworkInterfaceReferenceArgs(id=interface.id)]
            ),
            os_profile=self._login(),
            storage_profile=_disk(),
            security_profile=compute.SecurityProfileArgs(
                security_type=compute.SecurityTypes.TRUSTED_LAUNCH,
                uefi_settings=compute.UefiSettingsArgs(secure_boot_enabled=True, v_tpm_enabled=True),
            ),
            # Azure cannot change these after the first boot, and a replacement would end an update that runs there.
            opts=self.child(custom_timeouts=_TIMEOUTS, ignore_changes=["osProfile", "storageProfile"]),
        )

    def _login(self) -> compute.OSProfileArgs:
        key = compute.SshPublicKeyArgs(key_data=self._chosen.ssh_public_key, path=f"/home/{USER}/.ssh/authorized_keys")
        return compute.OSProfileArgs(
            computer_name=JUMP_BOX,
            admin_username=USER,
            custom_data=facts.custom_data(),
            linux_configuration=compute.LinuxConfigurationArgs(
                disable_password_authentication=True, ssh=compute.SshConfigurationArgs(public_keys=[key])
            ),
        )

    def _bastion(self) -> None:
        """Creates a Bastion of tier Standard: only this tier supports ssh (Azure's page on Bastion's settings)."""
        name, location = f"{self._name}-bastion", self._settings.location
        address = public_address(self, "bastion-address", name, self._group.name, location)
        azure.BastionHost(
            "bastion",
            bastion_host_name=self._name,
            resource_group_name=self._group.name,
            location=location,
            sku=azure.SkuArgs(name=azure.BastionHostSkuName.STANDARD),
            enable_tunneling=True,
            ip_configurations=[
                azure.BastionHostIPConfigurationArgs(
                    name="public",
                    subnet=azure.SubResourceArgs(id=self._network.subnet(BASTION)),
                    public_ip_address=azure.SubResourceArgs(id=address.id),
                )
            ],
            opts=self.child(custom_timeouts=_TIMEOUTS),
        )


def jump_box_name(settings: Settings) -> str:
    return f"{settings.names.cluster[:_LONGEST]}-jump"


_LONGEST = 64 - len("-jump")
"""The maximum length before the suffix: a Linux machine's name has at most 64 characters (Azure's naming rules)."""


def login_command(settings: Settings, group: str, key: str) -> str:
    """Returns the ssh command to the jump box.

    Azure's CLI needs the extensions `bastion` and `ssh`, even for a login with an SSH key (Azure/azure-cli-extensions,
    src/bastion/azext_bastion/custom.py, ssh_bastion_host).
    """
    name = jump_box_name(settings)
    machine = (
        f"/subscriptions/{subscription_id()}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{name}"
    )
    kind = "ed25519" if key.startswith("ssh-ed25519") else "rsa"
    return (
        f"az network bastion ssh --name {name} --resource-group {group} --target-resource-id {machine} "
        f"--auth-type ssh-key --username {USER} --ssh-key ~/.ssh/id_{kind}"
    )


def _disk() -> compute.StorageProfileArgs:
    return compute.StorageProfileArgs(
        image_reference=compute.ImageReferenceArgs(**facts.jump_box().image),
        os_disk=compute.OSDiskArgs(
            create_option=compute.DiskCreateOptionTypes.FROM_IMAGE,
            delete_option=compute.DiskDeleteOptionTypes.DELETE,
            disk_size_gb=facts.jump_box().disk_gb,
            managed_disk=compute.ManagedDiskParametersArgs(storage_account_type=DISK_TYPE),
        ),
    )
