"""Names of before work for a while, with a warning."""

from __future__ import annotations

import pytest

import dynamo_sim.autoscaling


@pytest.mark.parametrize(
    ("earlier", "name"),
    [
        ("Autoscaler", "PolicyRunner"),
        ("HpaSettings", "HpaFlags"),
        ("KpaSettings", "KpaScaling"),
        ("MetricsSettings", "MetricsSection"),
        ("SlaSettings", "SlaScaling"),
    ],
)
def test_classes_answer_to_their_earlier_names(earlier: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{earlier} is now called {name}"):
        assert getattr(dynamo_sim.autoscaling, earlier) is getattr(dynamo_sim.autoscaling, name)


def test_other_names_are_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = dynamo_sim.autoscaling.Nothing
