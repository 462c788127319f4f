"""A simulation of AKS's cluster autoscaler. Upstream's Go module is not available here (docs/simulator.md).

It follows the rules of kubernetes/autoscaler (cluster-autoscaler/; each module names the upstream files): pending pods,
expanders, backoff, scale-down, events and status. Not simulated: balancing of similar pools, ProvisioningRequests,
affinity between pods, topology spread, zones of volumes, DaemonSet pods of new nodes.
"""
