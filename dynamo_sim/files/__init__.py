"""Input and output files."""
