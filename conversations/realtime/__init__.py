"""From a commit to the socket: listener, hub, subscriptions, live lists, presence, and the server process itself."""
