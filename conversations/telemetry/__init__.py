"""What OpenTelemetry exporters send (OTLP): decoded, read by convention, and turned into events. Called by `asgi`.

`otlp_protobuf` and `otlp_json` decode spans and log records into `span.Span`; each module of `conventions/` reads one
family of instrumentations into a `span_facts.SpanFacts`; `span_events` makes payloads of it. All of these are claims
(law I): they are shown, searched and counted, and change no state.
"""
