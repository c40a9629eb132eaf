"""Workloads made from a rate over time and distributions of lengths."""
