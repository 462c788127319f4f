"""docs/images.md says of every image what it is made of."""

from __future__ import annotations

from config.facts.content_tags import IMAGES, image_names
from simulator.host.paths import ROOT
from simulator.tools.image_lock import bases
from tests.support.pages import rows

PAGE = ROOT / "docs" / "images.md"


def test_every_image_stands_there_with_its_base() -> None:
    told = {row[0].strip("`"): {row[1].strip("`")} for row in rows(PAGE, "image")}
    built = {name: set(bases((IMAGES / name / "Dockerfile").read_text("utf-8"))) for name in image_names()}
    assert told == built, f"the table of images in {PAGE.name} has to have each"
