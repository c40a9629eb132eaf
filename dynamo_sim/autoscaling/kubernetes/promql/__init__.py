"""PromQL queries of manifests as metric queries (`spec 10, 8.4`)."""
