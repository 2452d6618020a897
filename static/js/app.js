/** Entry point: the modules that every page loads. Nothing imports this file. */
import "./theme.js";
import "./desktop-notifications.js";
import "./clipped-text.js";
import "./clock.js";
import "./connection.js";
import "./field-size.js";
import "./keys.js";
import "./palette.js";
import "./plain-forms.js";
import "./plain-links.js";
