"""Arrival times of generated loads: rates over time, and the times they give."""
