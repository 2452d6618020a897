"""Django's settings, made from `config`."""

import hashlib
from pathlib import Path
from typing import Any

from dashboard import config as _config
from dashboard import databases as _databases
from dashboard import interface_font as _interface_font
from dashboard import mail_server as _mail_server
from dashboard import stored_secret as _stored_secret

CONFIG = _config.load()
ROOT = Path(__file__).resolve().parent.parent
PACKAGE_DATA = ROOT if (ROOT / "templates").is_dir() else Path(__file__).resolve().parent

SECRET_KEY = _stored_secret.secret_key(CONFIG)
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *CONFIG.allowed_hosts]
CSRF_TRUSTED_ORIGINS = CONFIG.allowed_origins
DATA_DIR = CONFIG.data_dir
SAMPLES_DIR = CONFIG.samples_dir

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "channels",
    "axes",
    "conversations",
    "agents_app",
    "dashboard",
]

MIDDLEWARE = [
    "dashboard.middleware.headers",
    "dashboard.middleware.compressed",
    "dashboard.middleware.fetch_metadata",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dashboard.middleware.signed_in",
    "django.middleware.csrf.CsrfViewMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"
WORKER = "agents_app.worker.embedded.EmbeddedWorker"  # what `serve` runs agents with

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [PACKAGE_DATA / "templates"],
        "OPTIONS": {
            "environment": "conversations.rendering.jinja_environment.make",
            "trim_blocks": True,
            "lstrip_blocks": True,
        },
    }
]

DATABASES = {
    "default": _databases.postgresql(CONFIG.database_url) if CONFIG.database_url else _databases.sqlite(DATA_DIR)
}
# The broadcast between processes: hints only. Deployments may share a Redis, whose pub/sub knows no databases, so the
# name holds what only one deployment has. Nothing waits for it: it fails quickly and `broadcast_sender` retries.
CHANNEL_LAYERS: dict[str, Any] = {}  # Any: Django's own shape
if CONFIG.redis_url:
    _host = {"address": CONFIG.redis_url, "socket_timeout": 2, "socket_connect_timeout": 2}
    _name = hashlib.sha256(f"doorbell {SECRET_KEY}".encode()).hexdigest()[:16]
    CHANNEL_LAYERS["default"] = {
        "BACKEND": "dashboard.server.channel_layer.DoorbellLayer",
        "CONFIG": {"hosts": [_host], "prefix": f"switchboard-{_name}-"},
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "conversations.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"

AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # the time shown to the person stays true
AXES_ENABLE_ACCESS_FAILURE_LOG = False
AXES_DISABLE_ACCESS_LOG = True  # the audit log has it
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "old", "new", "t", "csrfmiddlewaretoken"]  # never kept
AXES_CLIENT_IP_CALLABLE = "dashboard.sign_in_throttle.kept_address"
AXES_USERNAME_CALLABLE = "dashboard.sign_in_throttle.kept_name"
AXES_HANDLER = "dashboard.sign_in_throttle.Handler"
AXES_LOCKOUT_CALLABLE = "dashboard.pages.sign_in.locked_out"
AXES_VERBOSE = False

SESSION_ENGINE = "dashboard.session_store"
SESSION_COOKIE_AGE = 14 * 24 * 3600  # seconds
SESSION_COOKIE_NAME = "switchboard_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_NAME = "switchboard_csrf"
CSRF_COOKIE_HTTPONLY = False  # `static/js/fetch.js` reads it
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_FAILURE_VIEW = "dashboard.pages.errors.csrf_failure"

_mail = _mail_server.mail_server(CONFIG.email_url)
EMAIL_BACKEND = "conversations.alerts.smtp.EmailBackend"
EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.has_tls, _mail.has_starttls
DEFAULT_FROM_EMAIL = CONFIG.email_from

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [PACKAGE_DATA / "static", ("fonts", _interface_font.folder())]
STORAGES = {
    "staticfiles": {"BACKEND": "dashboard.static_files.Storage"},
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
}

LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 << 20  # bytes, for pages; the raw endpoints have limits of their own

BY_STRANGERS = ("DisallowedHost", "DisallowedRedirect", "RequestDataTooBig", "SuspiciousOperation", "TooManyFieldsSent")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "masking": {"()": "conversations.core.log_format.MaskingFilter"},
        "quiet": {"()": "conversations.core.log_format.QuietFilter"},
    },
    "formatters": {
        "text": {"()": "conversations.core.log_format.TextFormatter"},
        "json": {"()": "conversations.core.log_format.JsonFormatter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": CONFIG.log_format, "filters": ["masking"]}},
    "loggers": {
        "channels_redis": {
            "level": "CRITICAL"
        },  # `broadcast_sender` and `broadcast_listener` say it once, this one each second
        "agents_app": {"level": "INFO"},  # what ends trouble that was logged, and where keys are
        "conversations": {"level": "INFO"},
        "django.server": {"handlers": [], "propagate": True},
        "django": {"handlers": [], "propagate": True},
        **{f"django.security.{name}": {"filters": ["quiet"]} for name in BY_STRANGERS},
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
}
