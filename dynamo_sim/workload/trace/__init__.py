"""Trace files: one module a format, and what they have in common (`spec 08, 3`)."""
