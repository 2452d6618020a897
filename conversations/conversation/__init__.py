"""One conversation as people use it: the list, posting, control, forks, comparison and delivery status."""
