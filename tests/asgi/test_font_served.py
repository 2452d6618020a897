"""The interface's font as browsers get it: asked for beside the sheet, kept for a year."""

import re
import urllib.request

from tests.support.live import Server


def test_pages_ask_for_the_font_beside_their_sheet(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/sign-in/", timeout=30) as response:
        page = response.read().decode()

    links = re.findall(r'<link rel="preload" href="([^"]+)" as="font"', page)
    assert len(links) == 1
    with urllib.request.urlopen(server.url + links[0], timeout=30) as response:
        assert response.headers["Content-Type"] == "font/woff2"
        assert "immutable" in response.headers["Cache-Control"]
        assert response.read(4) == b"wOF2"
