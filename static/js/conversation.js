/** Entry point of the conversation page. Nothing imports this file. */
import "./tail-follow.js";
import "./conversation-strip.js";
import "./announcer.js";
import "./read-marker.js";
import "./conversation-panel.js";
import "./live-transcript.js";
import "./detail-level.js";
import "./transcript-menu.js";
import "./transcript-outline.js";
import "./transcript-search.js";
import "./play-head.js";
import "./event-picker.js";
import "./open-requests.js";
import "./fork-key.js";
import "./event-annotation.js";
import "./view-keys.js";
import "./json-copy.js";
import "./inline-actions.js";
import "./decision-form.js";
import "./conversation-control.js";
import "./speaker-picker.js"; // before `message-composer`, which restores a draft into it
import "./message-composer.js";
import "./conversation-presence.js";
import { followWaiting } from "./waiting-count.js";

followWaiting();
