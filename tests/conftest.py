"""One data directory for the whole test run, made before settings are read."""

import os
import tempfile

os.environ.setdefault("SWITCHBOARD_DATA_DIR", tempfile.mkdtemp(prefix="switchboard-test-"))
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # playwright's sync API runs a loop in the test's thread
