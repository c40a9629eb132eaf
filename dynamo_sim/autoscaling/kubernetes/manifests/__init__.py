"""Manifests as they run in a cluster: HPA, KEDA ScaledObject, Knative annotations (`spec 10, 2.1, 3.1, 4.1, 8.4`)."""
