"""Tools as workers told of them and as the record knows their calls: what the tool and agent pages read."""
