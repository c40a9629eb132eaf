"""State of the KV-aware router (`spec 06`): pure state machines, fed with times and events."""
