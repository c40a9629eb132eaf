"""The built-in scaling policies, one file a policy (`spec 10, 5 and 6`)."""
