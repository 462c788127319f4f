"""The real operator, Prometheus and kube-state-metrics of kube-prometheus-stack."""
