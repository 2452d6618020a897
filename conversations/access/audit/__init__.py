"""The audit log: a hash chain of what people and tokens did."""
