"""Loaded by pytest before anything reads settings: a data directory of this run's own, removed at its end."""

import atexit
import os
import shutil
import tempfile

if "SWITCHBOARD_TEST_RUN" not in os.environ:
    HOME = tempfile.mkdtemp(prefix="switchboard-test-")
    atexit.register(shutil.rmtree, HOME, ignore_errors=True)
    os.environ["SWITCHBOARD_DATA_DIR"] = HOME
    os.environ["SWITCHBOARD_TEST_RUN"] = "1"
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # playwright's sync API runs a loop in the test's thread
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SWITCHBOARD_MODEL"):
    os.environ.pop(name, None)  # tests say which server they mean; none is OpenAI's
