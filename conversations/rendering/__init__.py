"""Event → HTML, no query. `EventRenderer` draws rows; `participant_marks` and `richtext` draw names and text."""
