"""Teams that tests serve in processes of their own, by `SWITCHBOARD_TEAMS`."""
