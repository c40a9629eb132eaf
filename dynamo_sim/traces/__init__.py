"""Trace files: one module a format, the table of the formats, and what all of them use (`spec 08, 3`)."""
