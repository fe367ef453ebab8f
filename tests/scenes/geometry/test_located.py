"""Lookups against the nearest pixel of all, found by looking at every one."""

import numpy as np
import pytest
import rasterio
from rasterio.transform import xy

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.geometry import companions, inputgeometry, located, parts
from eigenscape.scenes.geometry.companions import locate
from eigenscape.scenes.geometry.names import find_companion
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.views.flightlines import GAP
from inputs import sensors
from inputs.sensors import Line, cells, make_glt, nearest_pixels, write_envi, write_glt, write_igm

LINE = Line()


@pytest.fixture(autouse=True)
def _many_tiles(monkeypatch):
    for module in (parts, located):
        monkeypatch.setattr(module, "TILE", 16)
    monkeypatch.setattr(inputgeometry, "PATCH", 8)
    companions._part.cache_clear()
    yield
    companions._part.cache_clear()


@pytest.fixture
def located_scene(tmp_path, rng):
    """Return a function that writes a scene with its geometry and says where its pixels are."""

    def make(*lines, name="line", geometry=None, cube=None, **options):
        for number, line in enumerate(lines):
            values = rng.random((line.height, line.width, 3)) if cube is None else cube
            write_envi(tmp_path / f"{name}{number}", values.astype(np.float32))
            if geometry is None:
                write_igm(tmp_path / f"{name}{number}_igm", line)
            else:
                geometry(tmp_path / f"{name}{number}_glt", line)
        paths = [str(tmp_path / f"{name}{number}") for number in range(len(lines))]
        given = SceneOptions(path=paths[0] if len(paths) == 1 else tuple(paths), **options)
        scene = open_scene(given, str)
        return scene, locate(scene, given)

    return make


def transform_of(found):
    return rasterio.Affine(*found.grid.transform)


def test_igm__every_cell_has_the_nearest_pixel(located_scene):
    scene, found = located_scene(LINE)
    lookup = found.rows(0, 0, found.grid.height)
    farthest = found.lines[0].part.farthest
    expected, apart = nearest_pixels(LINE, transform_of(found), lookup.shape, farthest)
    np.testing.assert_array_equal(lookup, expected)
    assert apart[lookup >= 0].max() <= farthest == 1
    assert found.grid.transform[0] == pytest.approx(sensors.PIXEL, rel=0.02)
    # Few pixels are lost between cells of their own size.
    assert len(np.unique(lookup)) > 0.75 * scene.grid.size
    np.testing.assert_array_equal(found.rows(0, 13, 29), lookup[13:29])


@pytest.mark.parametrize("heading", [0.0, 25.0])
def test_glt__says_what_the_table_says(located_scene, heading):
    table, transform = make_glt(LINE, heading=heading)
    # Of a cell that the sensor did not see the number is negative.
    signs = np.where(np.arange(table.shape[1]) % 3 == 0, -1, 1)[None, :, None]

    def write(path, _):
        write_envi(path, table * signs, crs=sensors.CRS, transform=transform)

    _, found = located_scene(LINE, geometry=write)
    expected = np.where(table[..., 0] > 0, (table[..., 1] - 1) * LINE.width + table[..., 0] - 1, -1)
    assert (found.grid.height, found.grid.width) == table.shape[:2]
    np.testing.assert_allclose(found.grid.transform, tuple(transform)[:6], atol=1e-3)
    np.testing.assert_array_equal(found.rows(0, 0, found.grid.height), expected)


def test_glt__south_up_and_named_by_the_job(located_scene, tmp_path):
    table, transform = make_glt(LINE, heading=-40, south_up=True)
    path = write_glt(tmp_path / "table.tif", LINE, heading=-40, south_up=True)
    np.save(tmp_path / "cube.npy", np.ones((60, 40, 3), np.float32))
    options = SceneOptions(path=str(tmp_path / "cube.npy"), geometry=str(path))
    scene = open_scene(options, str)
    found = locate(scene, options)
    assert "lookup table (GLT) table.tif" in scene.notes[0]
    assert str(path) in scene.files
    np.testing.assert_allclose(found.grid.transform, tuple(transform)[:6], rtol=1e-12)
    expected = np.where(table[..., 0] > 0, (table[..., 1] - 1) * LINE.width + table[..., 0] - 1, -1)
    np.testing.assert_array_equal(found.rows(0, 0, found.grid.height), expected)


@pytest.mark.parametrize("kind", ["igm", "glt"])
def test_tiles__hold_all_pixels_of_some_rows(located_scene, kind):
    table, transform = make_glt(LINE, heading=10)

    def write(path, _):
        write_envi(path, table, crs=sensors.CRS, transform=transform)

    _, found = located_scene(LINE, geometry=write if kind == "glt" else None)
    whole = found.rows(0, 0, found.grid.height)
    wanted = (whole >= 20 * LINE.width) & (whole < 31 * LINE.width)
    seen = np.zeros_like(wanted)
    windows = list(found.tiles(0, 20, 31))
    for top, bottom, left, right in windows:
        tile = found.tile(0, (top, bottom, left, right))
        np.testing.assert_array_equal(tile, whole[top:bottom, left:right])
        seen[top:bottom, left:right] = True
    assert not (wanted & ~seen).any()
    assert len(windows) < 0.7 * -(-whole.shape[0] // 16) * -(-whole.shape[1] // 16)


def test_lines__on_one_map(located_scene):
    other = Line(heading=-15, east=LINE.east + 150, north=LINE.north + 80, height=50, width=33)
    scene, found = located_scene(LINE, other)
    assert (scene.grid.height, scene.grid.width) == (60 + GAP + 50, 40)
    lookup = found.rows(1, 0, found.grid.height)
    shape, farthest = lookup.shape, found.lines[1].part._reach(found.grid)
    expected, apart = nearest_pixels(other, transform_of(found), shape, farthest)
    row, column = np.divmod(expected, other.width)
    there = np.abs(apart - farthest) > 1e-6
    expected = np.where(expected < 0, -1, (row + 60 + GAP) * 40 + column)
    np.testing.assert_array_equal(lookup[there], expected[there])
    # All of both lines is on the map.
    for line in (LINE, other):
        east, north = cells(transform_of(found), *line.places)
        assert min(east.min(), north.min()) >= 0
        assert east.max() <= shape[1]
        assert north.max() <= shape[0]


def test_igm__across_the_date_line(tmp_path, located_scene, monkeypatch):
    class Pacific(Line):
        @property
        def places(self):
            row, column = np.mgrid[: self.height, : self.width] * 1e-3
            return (179.98 + column + 180) % 360 - 180, -17 - row

    monkeypatch.setattr(sensors, "CRS", "EPSG:4326")
    _, found = located_scene(Pacific())
    assert found.grid.width < 60
    assert found.grid.transform[2] == pytest.approx(179.98, abs=2e-3)
    assert (found.rows(0, 0, found.grid.height) >= 0).mean() > 0.95


@pytest.mark.parametrize("kind", ["igm", "glt", "grid"])
@pytest.mark.parametrize("starts", [(179.985, -179.995), (-179.995, 179.985), (179.96, -179.995)])
def test_lines__on_both_sides_of_the_date_line(tmp_path, rng, kind, starts):
    """One map as wide as both; it holds the pixels of each where they are."""
    height, width, step = 20, 15, 1e-3
    paths = [tmp_path / f"line{number}" for number in range(2)]
    for path, start in zip(paths, starts, strict=True):
        transform = rasterio.Affine(step, 0, start, 0, -step, -17)
        placed = {"crs": "EPSG:4326", "transform": transform} if kind == "grid" else {}
        write_envi(path, rng.random((height, width, 3)).astype(np.float32), **placed)
        row, column = np.mgrid[:height, :width].astype(float)
        if kind == "glt":
            table = np.stack([column + 1, row + 1], axis=-1).astype(np.int32)
            write_envi(f"{path}_glt", table, crs="EPSG:4326", transform=transform)
        elif kind == "igm":
            x = (start + (column + 0.5) * step + 180) % 360 - 180
            places = np.stack([x, -17 - (row + 0.5) * step], axis=-1)
            write_envi(f"{path}_igm", places, crs="EPSG:4326")
    options = SceneOptions(path=tuple(map(str, paths)))
    scene = open_scene(options, str)
    found = locate(scene, options)
    gap = abs((starts[1] - starts[0] + 180) % 360 - 180)
    assert found.grid.height == pytest.approx(height, abs=1)
    assert found.grid.width == pytest.approx(gap / step + width, abs=2)
    for number, start in enumerate(starts):
        first = found.lines[number].first
        lookup = found.rows(number, 0, found.grid.height)
        down, along = np.nonzero(lookup >= 0)
        row, column = np.divmod(lookup[down, along], scene.grid.width)
        x, y = xy(transform_of(found), down, along)
        away = (np.array(x) - start - (column + 0.5) * step + 180) % 360 - 180
        assert np.abs(away).max() < step
        assert np.abs(np.array(y) + 17 + (row - first + 0.5) * step).max() < step
        assert len(np.unique(lookup[down, along])) > 0.9 * height * width
        tiles = {(top, left) for top, _, left, _ in found.tiles(number, first, first + height)}
        assert tiles >= set(
            zip((down // 16 * 16).tolist(), (along // 16 * 16).tolist(), strict=True)
        )


def test_igm__pixels_without_coordinates_are_nowhere(located_scene, tmp_path):
    class Holes(Line):
        @property
        def places(self):
            east, north = super().places
            east[:7], north[:7] = np.nan, np.nan
            east[50:], north[50:] = -9999, -9999
            return east, north

    _, found = located_scene(Holes())
    lookup = found.rows(0, 0, found.grid.height)
    assert set(np.unique(lookup[lookup >= 0] // 40).tolist()) == set(range(7, 50))


def test_companion__is_found_by_its_name(tmp_path):
    for name in (
        "ang2018_rfl_v2_img", "ang2018_rfl_v2_img.hdr", "ang2018_glt.img", "ang2018_rfl_igm",
        "line10", "line1_glt", "a.rfl", "a_GLT.dat",
    ):  # fmt: skip
        (tmp_path / name).touch()
    found = {
        name: find_companion(str(tmp_path / name))
        for name in ("ang2018_rfl_v2_img", "line10", "a.rfl", "line1_glt")
    }
    assert found == {
        "ang2018_rfl_v2_img": (str(tmp_path / "ang2018_rfl_igm"), "igm"),
        "line10": None,
        "a.rfl": (str(tmp_path / "a_GLT.dat"), "glt"),
        "line1_glt": None,
    }


def test_geometry__as_the_job_says(located_scene, tmp_path):
    scene, found = located_scene(LINE)
    assert any("line0_igm" in note for note in scene.notes)
    path = str(tmp_path / "line0")
    none = SceneOptions(path=path, geometry="none")
    assert locate(open_scene(none, str), none) is None
    named = SceneOptions(path=path, geometry=str(tmp_path / "line0_igm"), geometry_crs="EPSG:32634")
    other = locate(open_scene(named, str), named)
    assert other.grid.transform == found.grid.transform
    assert "zone 34N" in other.grid.crs_wkt


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crs": None}, r"scene\.geometry_crs, for example"),
        ({"width": 39}, r"60 x 39 pixels .* the scene 60 x 40"),
        ({"outlier": 1e9}, r"Some are fill values"),
        ({"outlier": 1e308}, r"e\+\d+ cells for .* Some are fill values"),
        ({"crs": "EPSG:4326"}, r"latitudes reach 5800000"),
        ({"nowhere": True}, "no two neighbouring pixels"),
    ],
)
def test_igm__raises_on_what_is_of_no_use(tmp_path, change, message):
    places = np.dstack(LINE.places)[:, : change.get("width", 40)]
    if "outlier" in change:
        places[3, 3] = change["outlier"]
    if "nowhere" in change:
        places[:] = np.nan
    crs = change.get("crs", sensors.CRS)
    write_envi(tmp_path / "s_igm", places, **({"crs": crs} if crs else {}))
    write_envi(tmp_path / "s", np.ones((60, 40, 3), np.float32))
    options = SceneOptions(path=str(tmp_path / "s"))
    with pytest.raises(SceneError, match=message):
        locate(open_scene(options, str), options)


def test_glt__raises_on_that_of_another_scene(located_scene):
    table, transform = make_glt(LINE)

    def write(path, _):
        write_envi(path, table + 2 * (table > 0), crs=sensors.CRS, transform=transform)

    with pytest.raises(
        SceneError, match=r"names column 4\d and row \d+ of a scene of 60 rows and 40"
    ):
        located_scene(LINE, geometry=write)


@pytest.mark.parametrize("coordinate", [0, 1])
def test_glt__raises_on_one_that_names_no_pixel(located_scene, coordinate):
    table, transform = make_glt(LINE)
    table[..., coordinate] = 0

    def write(path, _):
        write_envi(path, table, crs=sensors.CRS, transform=transform)

    with pytest.raises(SceneError, match="no cell of the lookup table names a pixel"):
        located_scene(LINE, geometry=write)


def test_lines__raise_on_what_does_not_go_together(located_scene, tmp_path):
    located_scene(LINE, LINE)
    paths = tuple(str(tmp_path / f"line{number}") for number in (0, 1))
    (tmp_path / "line1_igm").unlink()
    options = SceneOptions(path=paths)
    with pytest.raises(SceneError, match="line1: the position of this line is unknown"):
        locate(open_scene(options, str), options)
    with pytest.raises(SceneError, match="each has a geometry of its own"):
        open_scene(SceneOptions(path=paths, geometry=str(tmp_path / "line0_igm")), str)
    write_envi(tmp_path / "line1", np.ones((9, 9, 4), np.float32))
    with pytest.raises(SceneError, match="4 good bands of 4; the first line has 3 of 3"):
        open_scene(options, str)
