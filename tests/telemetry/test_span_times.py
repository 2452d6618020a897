"""An event tells its span's time to the nearest microsecond, however large the number of nanoseconds is."""

from datetime import UTC, datetime, timedelta

import pytest

from conversations.telemetry import intake
from conversations.telemetry.otlp_protobuf import traces as decoded
from tests.support.otlp import NOW, span, traces

# As floats, times of today are a quarter of a microsecond apart: the first three were told a microsecond too late.
PASSED = [231_300, 1_883_300, 2_310_300, 0, 499, 500, 999_999_499, 999_999_500]  # ns


@pytest.mark.parametrize("passed", PASSED)
def test_time_is_told_to_the_nearest_microsecond(passed):
    run = span("run", {"gen_ai.operation.name": "invoke_agent"})
    run.start_time_unix_nano = run.end_time_unix_nano = NOW + passed

    (started, _) = intake.of_spans(decoded(traces(run)).spans, intake.Memory())

    expected = datetime.fromtimestamp(NOW // 1_000_000_000, UTC) + timedelta(microseconds=(passed + 500) // 1_000)
    assert started.body["created_at"] == expected.isoformat()


def test_a_span_without_a_time_tells_none():
    run = span("run", {"gen_ai.operation.name": "invoke_agent"})
    run.start_time_unix_nano = run.end_time_unix_nano = 0

    (started, _) = intake.of_spans(decoded(traces(run)).spans, intake.Memory())

    assert started.body["created_at"] is None
