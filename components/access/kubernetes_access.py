"""Access to the cluster: a kubeconfig, a Kubernetes provider, and the rights that they need."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_azure_native import authorization, containerservice

from components._base import Component
from components.access import kubeconfig
from components.azure import roles
from components.azure.cluster import Cluster
from components.azure.retries import retry_policy
from components.preflight.checks import missing_programs
from config.schema.cluster import ClusterSettings

_REFUSED = "Getting static credential is not allowed"
"""ARM's error if local accounts are disabled."""


class KubernetesAccess(Component):
    """The kubeconfig and the Kubernetes provider.

    With local accounts, the kubeconfig has the admin certificate. Otherwise it calls kubelogin, and the deployer gets a
    role, because Azure RBAC gives the cluster's owner no rights in Kubernetes.

    Disabling local accounts later does not revoke certificates: run `az aks rotate-certs`.
    """

    kubeconfig: pulumi.Output[str]
    provider: kubernetes.Provider
    first_contact: pulumi.ResourceHookBinding | None
    """The hook that retries 403 responses until the deployer's role applies; None with local accounts."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        settings: ClusterSettings,
        admin: pulumi.Resource | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Creates the resources. Without local accounts, assigns the deployer's role unless `admin` already does."""
        super().__init__(name, opts)
        self.cluster = cluster
        self.settings = settings
        needs = [] if settings.local_accounts else [admin or self._role_assignment()]
        self.first_contact = retry_policy() if needs else None
        self.kubeconfig = pulumi.Output.secret(self._admin() if settings.local_accounts else self._user())
        self.provider = kubernetes.Provider(
            "kubernetes",
            kubeconfig=self.kubeconfig,
            # A new cluster replaces the provider and its resources. New credentials do not replace them.
            cluster_identifier=cluster.id,
            opts=self.child(depends_on=needs),
        )
        self.register_outputs({"kubeconfig": self.kubeconfig})

    def _admin(self) -> pulumi.Output[str]:
        place = pulumi.Output.all(self.cluster.resource_group, self.cluster.name)
        return place.apply(lambda names: self._certificate(*names))

    def _certificate(self, group: str, cluster: str) -> pulumi.Output[str]:
        """Returns the admin kubeconfig.

        A preview that enables local accounts cannot get it yet. With an unknown kubeconfig, it would show most objects
        as updated. So it uses the kubeconfig of the current login if the programs for that login are installed.
        """
        try:
            credentials = containerservice.list_managed_cluster_admin_credentials(
                resource_group_name=group, resource_name=cluster, opts=pulumi.InvokeOptions(parent=self)
            )
        except Exception as error:  # noqa: BLE001 - invokes raise bare exceptions
            if pulumi.runtime.is_dry_run() and _REFUSED in str(error):
                unknown: pulumi.Output[str] = pulumi.Output.from_input(pulumi.UNKNOWN)  # type: ignore[arg-type]
                return unknown if missing_programs(self.settings.login) else self._user()
            raise pulumi.RunError(str(error)) from None
        return pulumi.Output.from_input(kubeconfig.decode(credentials.kubeconfigs[0].value))

    def _user(self) -> pulumi.Output[str]:
        credentials = containerservice.list_managed_cluster_user_credentials_output(
            resource_group_name=self.cluster.resource_group,
            resource_name=self.cluster.name,
            format="exec",
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        login = self.settings.login
        return credentials.kubeconfigs.apply(
            lambda found: kubeconfig.with_login(kubeconfig.decode(found[0].value), login)
        )

    def _role_assignment(self) -> authorization.RoleAssignment:
        return roles.assign(
            "deployer-cluster-admin",
            role=roles.RBAC_CLUSTER_ADMIN,
            scope=self.cluster.id,
            principal=roles.deployer(self.settings, self),
            parent=self,
        )
