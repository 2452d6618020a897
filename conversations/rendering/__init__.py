"""Event → HTML, without queries. `EventRenderer` draws rows; `participant_marks` and `richtext` draw names and text."""
