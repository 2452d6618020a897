"""How static files are named: by their content, imported modules too, so that browsers keep them for good."""

from servestatic.storage import CompressedManifestStaticFilesStorage


class Storage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # servestatic is untyped
    """Rewrites `import "./x.js"` as well as `url()`: else a page could mix modules of two versions."""

    support_js_module_import_aggregation = True
    max_post_process_passes = 20  # a chain of imports needs a pass for each link
