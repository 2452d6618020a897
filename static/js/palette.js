/** The command palette. */
