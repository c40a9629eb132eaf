"""Routing modes that the reference does not have, and those of users."""
