"""Controllers of Kubernetes and the manifests that configure them (`spec 10, 2 to 4`)."""
