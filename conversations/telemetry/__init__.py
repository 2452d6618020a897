"""What OpenTelemetry exporters send (OTLP): decoded, read by convention, and made into events. Called by `asgi`.

`otlp_protobuf` and `otlp_json` decode spans and log records into `span.Span`; each module of `conventions/` reads what
one family of instrumentations writes into a `reading.SpanReading`; `span_events` makes payloads of it. All of them are
claims (law I): they are shown, searched and counted, and change no state.
"""
