"""OpenTelemetry export: our own runs as spans of the GenAI conventions, to any collector (OTLP/HTTP).

The record is the queue: a cursor over the rows of events says up to where every ended run has been accepted. It moves
after the collector's answer, so that a restart loses nothing, and no run waits for a collector.

ended_runs     the runs that ended after the cursor, and the events of one
run_spans      a run's events → its spans
cursor         up to where the collector has everything, and figures for the operations page
collector      one request
exporter       the thread that does all this
"""
