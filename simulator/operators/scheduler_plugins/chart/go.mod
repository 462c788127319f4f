module ai-on-aks/simulator/operators/scheduler_plugins/chart

go 1.26.0

require (
	sigs.k8s.io/scheduler-plugins v0.34.7
)
