"""From exact metrics to what a controller can see: exporter, scrapes, windows, staleness (`spec 10, 8`)."""
