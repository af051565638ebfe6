import numpy as np
import pytest

from engines.objectives import Objective, parse_objectives
from engines.search.knee import knee
from engines.trial import Outcome, Trial
from search_space.errors import ObjectiveError

PAIR = parse_objectives("val_error,inference_seconds")


def front(*points: tuple[float, float]) -> list[Trial[int]]:
    return [
        Trial(i, i).complete(Outcome({"val_error": error, "inference_seconds": seconds}), PAIR, 1.0)
        for i, (error, seconds) in enumerate(points)
    ]


def test_the_knee_is_farthest_from_the_chord_with_cost_in_log() -> None:
    # log10 cost 0, 1, 2 scaled to 0, .5, 1; errors .5, .2, .1 scaled to 1, .25, 0: only the middle is off the chord.
    assert knee(front((0.5, 1.0), (0.2, 10.0), (0.1, 100.0)), PAIR).design == 1


def test_the_distance_agrees_with_plane_geometry() -> None:
    points = [(0.5, 1e-3), (0.3, 2e-3), (0.24, 8e-3), (0.2, 5e-2), (0.18, 0.4)]
    scaled = np.array([[(e - 0.18) / 0.32, np.log(s / 1e-3) / np.log(400)] for e, s in points])
    start, end = scaled[0], scaled[-1]
    side = end - start
    distance = [abs(side[0] * (p - start)[1] - side[1] * (p - start)[0]) / np.hypot(*side) for p in scaled]
    assert knee(front(*points), PAIR).design == int(np.argmax(distance))


def test_without_the_logarithm_another_design_would_win() -> None:
    points = [(0.5, 1.0), (0.26, 30.0), (0.1, 1000.0), (0.09, 1001.0)]
    linear = [(e - 0.09) / 0.41 + (s - 1) / 1000 for e, s in points]
    assert int(np.argmin(linear)) == 1
    logarithmic = [(e - 0.09) / 0.41 + np.log(s) / np.log(1001) for e, s in points]
    assert knee(front(*points), PAIR).design == int(np.argmin(logarithmic)) == 1
    steep = [(0.5, 1.0), (0.45, 1.5), (0.3, 500.0), (0.09, 1001.0)]
    assert int(np.argmin([(e - 0.09) / 0.41 + (s - 1) / 1000 for e, s in steep])) == 1
    assert knee(front(*steep), PAIR).design == 1


def test_ties_go_to_the_cheaper() -> None:
    # All four lie on the chord: scaled (1, 0), (2/3, 1/3), (1/3, 2/3), (0, 1).
    assert knee(front((0.1, 1000.0), (0.2, 100.0), (0.3, 10.0), (0.4, 1.0)), PAIR).design == 3


def test_one_design_is_its_own_knee_and_of_two_the_cheaper_wins() -> None:
    assert knee(front((0.3, 2.0)), PAIR).design == 0
    assert knee(front((0.1, 5.0), (0.3, 2.0)), PAIR).design == 1


def test_of_equal_designs_the_earlier_wins() -> None:
    assert knee(front((0.3, 2.0), (0.3, 2.0)), PAIR).design == 0


def test_a_cost_of_zero_is_scaled_without_logarithm() -> None:
    assert knee(front((0.5, 0.0), (0.15, 4.0), (0.1, 10.0)), PAIR).design == 1


def test_a_bulge_away_from_the_ideal_point_is_no_knee() -> None:
    # The middle design gives up a lot and saves little: the ends are better, and the cheaper one is taken.
    assert knee(front((0.5, 1.0), (0.48, 90.0), (0.1, 100.0)), PAIR).design == 0


def test_direction_does_not_matter() -> None:
    accuracy = Objective("accuracy", "1", direction="maximise")
    values = [(0.5, 1.0), (0.8, 10.0), (0.9, 100.0)]
    trials = [
        Trial(i, i).complete(Outcome({"accuracy": a, "inference_seconds": s}), [accuracy, PAIR[1]], 1.0)
        for i, (a, s) in enumerate(values)
    ]
    assert knee(trials, [accuracy, PAIR[1]]).design == 1


def test_three_objectives_use_the_plane() -> None:
    triple = parse_objectives("val_error,inference_seconds,parameters")
    values = [(0.1, 100.0, 100.0), (0.5, 1.0, 100.0), (0.5, 100.0, 1.0), (0.15, 2.0, 2.0)]
    trials = [
        Trial(i, i).complete(
            Outcome(dict(zip(("val_error", "inference_seconds", "parameters"), v, strict=True))), triple, 1.0
        )
        for i, v in enumerate(values)
    ]
    assert knee(trials, triple).design == 3


def test_an_empty_front_has_no_knee() -> None:
    with pytest.raises(ObjectiveError, match="a knee needs a front of at least one design, got none"):
        knee([], PAIR)
