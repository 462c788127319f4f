"""A simulation of AKS's cluster autoscaler. Upstream's Go module is not available here (docs/simulator.md).

It follows kubernetes/autoscaler (cluster-autoscaler/; each module names upstream files). Not simulated: balancing of
similar pools, ProvisioningRequests, pod affinity, topology spread, zones of volumes, DaemonSet pods of new nodes.
"""
