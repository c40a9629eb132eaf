"""Code that a person brings along: classes by name, and their methods called with errors in one line."""
