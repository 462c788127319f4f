"""The cluster autoscaler of AKS. Upstream's own cannot be had here: its module is not served (docs/simulator.md).

So it is simulated, by upstream's rules (kubernetes/autoscaler, cluster-autoscaler/, whose files the modules name): who
waits, which pools could help, which of them the expander takes, when one backs off, which nodes go, and what events and
the status tell of it. Not simulated: balancing of similar pools, ProvisioningRequests, affinity between pods,
topology spread, volumes' zones, DaemonSets' pods that a new node would bring.
"""
