"""Descriptions of scenes for the plan and the log."""

from pathlib import Path

from eigenscape.base.shares import counted
from eigenscape.scenes.types import Labels, Scene


def describe_scene(scene: Scene) -> list[str]:
    """Return table or image and its size, and what the reader of a scene noted."""
    grid, count = scene.grid, scene.bands.count
    name = Path(scene.files[0]).name
    if grid.is_table:
        what = f"table of {grid.height:,} samples x {counted(count, 'feature')}"
    else:
        what = f"image of {grid.height:,} rows x {grid.width:,} columns x {counted(count, 'band')}"
    return [f"{what} ({name})", *notes_of(scene)]


def notes_of(source: Scene | Labels) -> tuple[str, ...]:
    """Return what the reader of a scene or of labels noted, and what mask and subset add to it."""
    notes = tuple(getattr(source, "notes", ()))
    for name in ("scene", "labels"):
        inner = getattr(source, name, None)
        if inner is not None:
            return (*notes_of(inner), *notes)
    return notes
