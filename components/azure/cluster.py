"""The AKS cluster with its system pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pulumi
from pulumi_azure_native import containerservice

from components._base import Component
from components.azure import roles
from components.azure.cluster_network import OwnNetwork, api_server, identity, network_profile, with_nodes
from components.azure.retries import join_retry_policy
from components.preflight.existing_cluster import PROFILES, report_pool_changes
from config.data.scheduling import SYSTEM_TAINT
from config.problems.fixes import set_command
from config.rules.vcpu_quota import is_version
from config.schema.cluster import SYSTEM_DISK_GB, SYSTEM_DISK_TYPE, MaintenanceWindow, SystemPool, reimages
from config.schema.models import Settings
from config.schema.storage import StorageSettings

SYSTEM_POOL = "system"
# Creation takes 4 to 15 minutes. An update only upgrades the control plane; pools are separate (azure/node_pools.py).
_TIMEOUTS = pulumi.CustomTimeouts(create="40m", update="2h", delete="40m")


class Cluster(Component):
    """The cluster. GPU pools are separate resources, because an inline pool cannot be replaced alone."""

    resource_group: pulumi.Output[str]
    name: pulumi.Output[str]
    id: pulumi.Output[str]

    kubelet_object_id: pulumi.Output[str]
    issuer: pulumi.Output[str]
    subnet: pulumi.Input[str] | None

    def __init__(
        self,
        name: str,
        settings: Settings,
        resource_group: pulumi.Output[str],
        *,
        node_os_channel: str | None = None,
        ip_ranges: Sequence[str] = (),
        own_network: OwnNetwork | None = None,
        there: bool = True,
        protect: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Creates the cluster in the network `own_network`. If it is None, AKS creates a network.

        If the cluster exists (`there`), `node_os_channel` and `ip_ranges` are its current values.
        """
        super().__init__(name, opts)
        self.settings = settings
        self.resource_group = resource_group
        self._protect = protect
        self.subnet = own_network.subnet if own_network else None
        gateway = own_network is not None and own_network.outbound_address is not None
        ranges = [] if settings.network.private else chosen_ranges(settings, ip_ranges, gateway=gateway)
        self.resource = self._cluster(chosen_channel(settings, node_os_channel), ranges, own_network)
        self.name = self.resource.name
        if window := settings.cluster.maintenance_window:
            self._node_os_window(window)
        self.id = self.resource.id
        found = self._found() if there else self.resource
        self.kubelet_object_id = found.identity_profile.apply(
            lambda each: str((each or {})["kubeletidentity"].object_id)
        )
        self.issuer = found.oidc_issuer_profile.apply(lambda profile: str(profile.issuer_url))
        self._allow_groups()
        runs = self.resource.agent_pool_profiles.apply(_system_pool_version)
        pulumi.Output.all(runs, self.resource_group, self.name).apply(lambda found: self._warn_if_behind(*found))
        self.register_outputs({"name": self.name, "id": self.id})

    def _cluster(
        self, node_os_channel: str, ip_ranges: list[str], own: OwnNetwork | None
    ) -> containerservice.ManagedCluster:
        names, cluster = self.settings.names, self.settings.cluster
        hooks = join_retry_policy() if own and own.needs else pulumi.ResourceHookBinding()
        hooks.before_update = [report_pool_changes()]
        return containerservice.ManagedCluster(
            "cluster",
            resource_group_name=self.resource_group,
            resource_name_=names.cluster,
            location=self.settings.location,
            dns_prefix=names.dns_prefix,
            node_resource_group=names.node_resource_group,
            kubernetes_version=cluster.kubernetes_version,
            sku=containerservice.ManagedClusterSKUArgs(name="Base", tier=cluster.tier),
            # AKS requires tier and plan together (page on pricing tiers, "Create an AKS cluster in the Premium tier").
            support_plan="AKSLongTermSupport" if cluster.lts else None,
            identity=identity(cluster, own),
            enable_rbac=True,
            aad_profile=self._entra(),
            disable_local_accounts=not cluster.local_accounts,
            api_server_access_profile=api_server(self.settings, with_nodes(ip_ranges, own)),
            # Pods that mount blobs exchange the issuer's tokens for Azure tokens (azure/identity.py), and so do users'
            # pods, which AKS's webhook configures. AKS can enable issuer and webhook in place.
            oidc_issuer_profile=containerservice.ManagedClusterOIDCIssuerProfileArgs(enabled=True),
            security_profile=containerservice.ManagedClusterSecurityProfileArgs(
                workload_identity=containerservice.ManagedClusterSecurityProfileWorkloadIdentityArgs(enabled=True)
            ),
            network_profile=network_profile(self.settings.network),
            # Upgrading a node kills its jobs, so only a change of the settings upgrades nodes.
            auto_upgrade_profile=containerservice.ManagedClusterAutoUpgradeProfileArgs(
                upgrade_channel="none", node_os_upgrade_channel=node_os_channel
            ),
            auto_scaler_profile=_autoscaler_profile(self.settings),
            storage_profile=_storage_profile(self.settings.storage),
            agent_pool_profiles=[_system_pool(cluster.system_pool, self.subnet, self.settings.tags)],
            opts=self.child(
                custom_timeouts=_TIMEOUTS,
                protect=self._protect,
                depends_on=own.needs if own else None,
                hooks=hooks,
                hide_diffs=[PROFILES],
                # AKS can widen this range (preflight/existing_network.py), but the provider would replace the cluster.
                ignore_changes=["networkProfile.podCidr"],
            ),
        )

    def _node_os_window(self, window: MaintenanceWindow) -> None:
        containerservice.MaintenanceConfiguration(
            "node-os-window",
            resource_group_name=self.resource_group,
            resource_name_=self.name,
            config_name="aksManagedNodeOSUpgradeSchedule",
            maintenance_window=containerservice.MaintenanceWindowArgs(
                schedule=containerservice.ScheduleArgs(
                    weekly=containerservice.WeeklyScheduleArgs(day_of_week=window.day, interval_weeks=1)
                ),
                start_time=window.start_time,
                duration_hours=window.hours,
                utc_offset=window.utc_offset,
            ),
            opts=self.child(),
        )

    def _entra(self) -> containerservice.ManagedClusterAADProfileArgs | None:
        cluster = self.settings.cluster
        if not cluster.entra:
            return None
        return containerservice.ManagedClusterAADProfileArgs(
            managed=True,
            enable_azure_rbac=True,
            admin_group_object_ids=sorted(str(group) for group in cluster.admin_group_object_ids),
        )

    def _allow_groups(self) -> None:
        """Gives groups of cluster admins and teams the right to get a kubeconfig, which needs a role in Azure."""
        cluster = self.settings.cluster
        of_teams = (group for team in self.settings.teams.values() for group in team.groups)
        groups = {str(each).lower(): str(each) for each in (*of_teams, *cluster.admin_group_object_ids)}
        for group in sorted(groups.values()) if cluster.entra else ():
            who = roles.Principal(object_id=pulumi.Output.from_input(group), kind="Group")
            roles.assign(f"kubeconfig-{group}", role=roles.CLUSTER_USER, scope=self.id, principal=who, parent=self)

    def _found(self) -> pulumi.Output[Any]:
        """Reads the cluster from Azure. In the preview of an update, the resource's own outputs are unknown, and the
        role for image pulls would show as replaced.
        """
        return containerservice.get_managed_cluster_output(
            resource_group_name=self.resource_group,
            resource_name=self.name,
            opts=pulumi.InvokeOutputOptions(parent=self),
        )

    def _warn_if_behind(self, runs: str | None, group: str, cluster: str) -> None:
        wanted = self.settings.cluster.kubernetes_version
        if runs and not is_version(runs, wanted):
            pulumi.log.warn(
                f"the nodes of the system pool run Kubernetes {runs}, not {wanted}. cluster.kubernetesVersion only "
                "upgrades the control plane and the GPU pools. Upgrade the system pool: az aks nodepool upgrade "
                f"--resource-group {group} --cluster-name {cluster} --name {SYSTEM_POOL} --kubernetes-version {wanted} "
                f"&& pulumi up --refresh -s {self.settings.stack}"
            )


def chosen_channel(settings: Settings, has: str | None) -> str:
    """Returns the OS channel of the settings. If it is unset and the default would re-create all nodes, returns the
    current channel (`has`).

    Logs a warning in this case, and if the update re-creates all nodes.
    """
    cluster, path = settings.cluster, ("cluster", "nodeOsChannel")
    wanted: str = cluster.node_os_channel
    if has is None or not reimages(has, wanted):
        return wanted
    if "node_os_channel" in cluster.model_fields_set:
        keep = set_command(path, has).text(settings.stack)
        pulumi.log.warn(
            f"cluster.nodeOsChannel is {wanted}, but the cluster has {has}. For this change, AKS re-creates all nodes, "
            f"which ends their jobs. To keep {has}: {keep}"
        )
        return wanted
    change, keep = (set_command(path, channel).text(settings.stack) for channel in (wanted, has))
    pulumi.log.warn(
        f"the cluster keeps the OS channel {has}, because AKS would re-create all nodes for {wanted}. To change to "
        f"{wanted}, while no job runs: {change} && pulumi up -s {settings.stack}. To keep {has} without this "
        f"warning: {keep}"
    )
    return has


def chosen_ranges(settings: Settings, has: Sequence[str], *, gateway: bool = False) -> list[str]:
    """Returns the ranges of the settings. If they are unset, returns the current ranges (`has`).

    Logs a warning if it keeps ranges, which another tool may have set, or if the ranges change. If nodes use a NAT
    `gateway`, `has` also contains its address. An empty list ends the restriction (MicrosoftDocs/azure-aks-docs,
    articles/aks/api-server-authorized-ip-ranges.md).
    """
    cluster, names, path = settings.cluster, settings.names, ("cluster", "authorizedIpRanges")
    wanted = sorted(set(cluster.authorized_ip_ranges))
    keep = " && ".join(set_command((*path, at), each).text(settings.stack) for at, each in enumerate(has))
    if "authorized_ip_ranges" not in cluster.model_fields_set and has:
        pulumi.log.warn(
            f"the cluster's API server still accepts only {', '.join(has)}. To keep these ranges without this warning: "
            f"{keep}. To change them, set cluster.authorizedIpRanges"
        )
        return list(has)
    if not wanted and len(has) > gateway:
        pulumi.log.warn(
            "cluster.authorizedIpRanges is an empty list, so the cluster's API server will accept all addresses. "
            f"Now it accepts only {', '.join(has)}. To keep these ranges: {keep}"
        )
    if wanted and (set(wanted) - set(has) or len(set(has) - set(wanted)) > gateway):
        pulumi.log.warn(
            f"the cluster's API server will only accept {', '.join(wanted)}. Later updates must also come from these "
            "addresses. If you have locked yourself out, add your own address: az aks update --resource-group "
            f"{names.resource_group} --name {names.cluster} --api-server-authorized-ip-ranges "
            f"'{','.join((*wanted, '<your address>/32'))}'. Then also add it to cluster.authorizedIpRanges"
        )
    return wanted


def _system_pool_version(pools: Iterable[Any] | None) -> str | None:
    return next((pool.current_orchestrator_version for pool in pools or () if pool.name == SYSTEM_POOL), None)


def _autoscaler_profile(settings: Settings) -> containerservice.ManagedClusterPropertiesAutoScalerProfileArgs | None:
    """Returns a profile with all fields, because AKS keeps the values of omitted ones. None if no pool autoscales."""
    pools = settings.gpu_pools().values()
    if not any(pool.autoscale for pool in pools):
        return None
    chosen = settings.cluster.autoscaler
    return containerservice.ManagedClusterPropertiesAutoScalerProfileArgs(
        expander=chosen.expander,
        scale_down_unneeded_time=f"{chosen.unneeded_minutes}m",
        # These two values are AKS's defaults (https://learn.microsoft.com/azure/aks/cluster-autoscaler).
        scale_down_delay_after_add="10m",
        max_graceful_termination_sec="600",
        max_node_provision_time=f"{chosen.provision_minutes}m",
        scale_down_unready_time=f"{chosen.unready_minutes}m",
        ok_total_unready_count=str(chosen.allowed_unready(sum(pool.max_nodes for pool in pools))),
        max_total_unready_percentage=str(chosen.unready_percent),
    )


def _storage_profile(storage: StorageSettings) -> containerservice.ManagedClusterStorageProfileArgs:
    """Returns the profile of AKS's blob CSI driver. The driver is off if the stack installs the driver's chart.

    `False` is explicit, because AKS keeps the value of omitted fields.
    """
    blob = containerservice.ManagedClusterStorageProfileBlobCSIDriverArgs(enabled=storage.needs("addon"))
    return containerservice.ManagedClusterStorageProfileArgs(blob_csi_driver=blob)


def _system_pool(
    pool: SystemPool, subnet: pulumi.Input[str] | None, tags: Mapping[str, str]
) -> containerservice.ManagedClusterAgentPoolProfileArgs:
    """Returns the system pool without a Kubernetes version.

    AKS rejects a version unless the request has all of the cluster's pools with their versions
    (NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged, Azure/ARO-HCP#662).
    """
    return containerservice.ManagedClusterAgentPoolProfileArgs(
        name=SYSTEM_POOL,
        mode="System",
        type="VirtualMachineScaleSets",
        vm_size=pool.vm_sku,
        count=pool.count,
        os_type="Linux",
        os_sku="Ubuntu",
        os_disk_size_gb=SYSTEM_DISK_GB,
        os_disk_type=SYSTEM_DISK_TYPE,
        node_taints=[SYSTEM_TAINT] if pool.taint else [],
        max_pods=pool.max_pods,
        vnet_subnet_id=subnet,
        tags=tags or None,  # pools do not inherit the cluster's tags (https://learn.microsoft.com/azure/aks/use-tags)
    )
