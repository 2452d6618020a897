"""Event → HTML, no query. `drawing.Pen` draws rows; `who` and `richtext` draw names and words for pages."""
