"""Tools as workers reported them and as calls recorded them: for the tool and agent pages."""
