/** What every page loads. Nothing imports this file. */
import "./theme.js";
import "./desktop-notifications.js";
import "./clock.js";
import "./connection.js";
import "./navigation.js";
import "./keys.js";
import "./palette.js";
