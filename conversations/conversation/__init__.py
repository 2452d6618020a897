"""One conversation as people use it: list, posting, control, forks, comparison and delivery status."""
