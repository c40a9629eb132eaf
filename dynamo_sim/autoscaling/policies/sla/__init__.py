"""A policy that keeps latency targets by a model of the engine learnt from its passes (`spec 10, 6.5 and 6.7`)."""
