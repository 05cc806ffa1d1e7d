"""Assets: the files that pages are drawn with: our own, and others' as they were published, each with its licence.

Nothing is fetched from anywhere else, and nothing is built. A path has the beginning of its file's digest in it, so that a
browser may keep it for ever, and a newer release is another path. `manifest.json` says where others' files are from, and what
they are.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

FOLDER = os.path.join(os.path.dirname(__file__), "assets")
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


class Assets:
    """The files, read once, by the path that they are served under."""

    def __init__(self, folder: str = FOLDER) -> None:
        self._files: dict[str, tuple[bytes, str]] = {}
        self._paths: dict[str, str] = {}
        for place in (folder, os.path.join(folder, "vendored")):
            for name in sorted(os.listdir(place)):
                kind = KINDS.get(os.path.splitext(name)[1])
                if kind is None:
                    continue
                with open(os.path.join(place, name), "rb") as file:
                    content = file.read()
                path = f"{sha256(content).hexdigest()[:12]}/{name}"
                self._files[path] = content, kind
                self._paths[name] = f"/assets/{path}"

    def path_of(self, name: str) -> str:
        """The path of a file, below the root of the dashboard."""
        return self._paths[name]

    async def serve(self, request: Request) -> Response:
        """The file of a path."""
        found = self._files.get(request.path_params["path"])
        if found is None:
            raise HTTPException(404)
        content, kind = found
        return Response(content, headers={"content-type": kind, "cache-control": _FOR_EVER})


def manifest(folder: str = FOLDER) -> dict[str, dict[str, str]]:
    """What others' files are: name, version, licence, where from and the SHA-256 of each."""
    with open(os.path.join(folder, "vendored", "manifest.json"), encoding="utf-8") as file:
        found: dict[str, dict[str, str]] = json.load(file)
    return found
