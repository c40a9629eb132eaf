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


def test_a_fleet_view_answers_to_leaving() -> None:
    with pytest.warns(DeprecationWarning, match="now called draining"):
        view = dynamo_sim.autoscaling.FleetView.of(1, leaving=2)
    with pytest.warns(DeprecationWarning, match="now called draining"):
        assert view.leaving == view.draining == 2


def test_other_names_are_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = dynamo_sim.autoscaling.Nothing
