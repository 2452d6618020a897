"""OpenTelemetry out: what our own runs did, as spans of the GenAI conventions, to any collector (OTLP/HTTP).

The record is the queue: a cursor over the rows of events says up to where every ended run has been accepted. It moves
after the collector's answer, so that nothing is lost over a restart, and no run waits for a collector.

ended_runs     the runs that ended behind the cursor, and the events of one
run_spans      a run's events → its spans
cursor         up to where the collector has everything, and figures for the page of operations
collector      one request
exporter       the thread that does all this
"""
