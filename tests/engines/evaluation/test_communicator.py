"""One rank answers itself; its errors are passed on."""

from __future__ import annotations

import numpy as np
import pytest

from engines.evaluation.communicator import SerialCommunicator, Traffic, failures_end_the_job
from engines.evaluation.messages import Tag
from search_space.errors import PascaError, ShapeError


def test_one_rank_talks_to_itself_alone() -> None:
    alone = SerialCommunicator()
    array = np.array([1.0, 2.0])
    np.testing.assert_array_equal(alone.sum(array), array)
    assert alone.exchange([array])[0] is array
    assert alone.gather(array)[0] is array
    assert alone.gather_objects("x") == ["x"]
    assert alone.split(None) is None
    assert isinstance(alone.split(3), SerialCommunicator)
    assert alone.receive_bytes(Tag.REQUEST) is None
    assert alone.traffic == Traffic()


def test_one_rank_cannot_send_to_another() -> None:
    with pytest.raises(ShapeError, match="there is 1 rank, so none has the number 1"):
        SerialCommunicator().send_object("x", 1, Tag.ORDER)


def test_an_error_of_a_single_rank_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError), failures_end_the_job(SerialCommunicator()):
        raise ZeroDivisionError


def test_a_single_rank_aborts_by_raising() -> None:
    with pytest.raises(PascaError, match="out of luck"):
        SerialCommunicator().abort("out of luck")


def test_traffic_is_measured_from_a_moment_on() -> None:
    traffic = Traffic(sent_bytes=10, num_messages=1)
    before = traffic.copy()
    traffic.sent_bytes += 5
    assert traffic.since(before) == Traffic(sent_bytes=5)
