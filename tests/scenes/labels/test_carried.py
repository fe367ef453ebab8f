import numpy as np
import pytest
import rasterio

from eigenscape.job.options import SceneOptions
from eigenscape.scenes.geometry import companions, inputgeometry, located, parts
from eigenscape.scenes.geometry.companions import locate
from eigenscape.scenes.labels.sources import open_labels
from eigenscape.scenes.open import open_scene
from inputs import sensors
from inputs.sensors import Line, cells, ground, write_envi, write_igm, write_points

LINE = Line()


@pytest.fixture
def labels_of(tmp_path, monkeypatch):
    """Return a function that opens labels of a scene in sensor geometry."""
    for module in (parts, located):
        monkeypatch.setattr(module, "TILE", 16)
    monkeypatch.setattr(inputgeometry, "PATCH", 8)
    companions._part.cache_clear()
    write_envi(tmp_path / "s", np.ones((60, 40, 3), np.float32))
    write_igm(tmp_path / "s_igm", LINE)

    def make(name):
        options = SceneOptions(path=str(tmp_path / "s"), labels=str(tmp_path / name))
        scene = open_scene(options, str)
        return open_labels(options, scene, str), locate(scene, options)

    yield make
    companions._part.cache_clear()


def carried(given, lookup):
    """Return the class of most cells of each pixel, of equally many the lowest."""
    found = np.zeros(60 * 40, np.uint16)
    for pixel in np.unique(lookup[lookup >= 0]):
        votes = np.bincount(given[lookup == pixel], minlength=6)
        votes[0] = 0
        found[pixel] = votes.argmax() if votes.any() else 0
    return found.reshape(60, 40)


def test_carried__a_raster_of_another_grid(labels_of, tmp_path, rng):
    classes = rng.integers(0, 5, (90, 80)).astype(np.uint8)
    transform = rasterio.Affine(9, 0, 499_700, 0, -9, 5_800_050)
    with rasterio.open(
        tmp_path / "map.tif", "w", driver="GTiff", height=90, width=80, count=1, dtype="uint8",
        crs=sensors.CRS, transform=transform,
    ) as dataset:  # fmt: skip
        dataset.write(classes, 1)
    labels, found = labels_of("map.tif")
    given, lookup = labels.labels.read(0, found.grid.height), found.rows(0, 0, found.grid.height)
    np.testing.assert_array_equal(labels.read(0, 60), carried(given, lookup))
    np.testing.assert_array_equal(labels.read(17, 22), labels.read(0, 60)[17:22])
    assert "carried from the map" in labels.notes[0]


def test_carried__points_label_the_pixel_at_their_place(labels_of, tmp_path, rng):
    write_points(tmp_path / "points.csv", LINE, rng, 120)
    labels, found = labels_of("points.csv")
    classes = labels.read(0, 60)
    east, north = LINE.places
    there = classes > 0
    assert 100 <= there.sum() <= 130
    np.testing.assert_array_equal(classes[there], ground(east, north)[there])
    table = np.loadtxt(tmp_path / "points.csv", delimiter=",", skiprows=1)
    column, row = cells(rasterio.Affine(*found.grid.transform), table[:, 0], table[:, 1])
    lookup = found.rows(0, 0, found.grid.height)
    hit = lookup[np.floor(row).astype(int), np.floor(column).astype(int)]
    assert (classes.ravel()[hit[hit >= 0]] > 0).all()


def test_carried__polygons(labels_of, tmp_path):
    import geopandas
    from shapely.geometry import box

    frame = geopandas.GeoDataFrame(
        {"class": [1, 2]},
        geometry=[box(499_900, 5_799_700, 500_040, 5_799_900), box(500_100, 0, 500_300, 6e6)],
        crs=sensors.CRS,
    )
    frame.to_file(tmp_path / "fields.gpkg")
    labels, _ = labels_of("fields.gpkg")
    classes, (east, north) = labels.read(0, 60), LINE.places
    inside = (east > 499_910) & (east < 500_030) & (north > 5_799_710) & (north < 5_799_890)
    # But for pixels that lie between cells of the map, as wide as they are.
    assert set(np.unique(classes[inside]).tolist()) <= {0, 1}
    assert (classes[inside] == 1).mean() > 0.8
    assert (classes[(east > 500_110) & (east < 500_290)] == 2).mean() > 0.8
    assert not classes[(east > 500_050) & (east < 500_090)].any()


def test_carried__points_across_the_date_line(labels_of, tmp_path):
    row, column = np.mgrid[:60, :40].astype(float)
    lon, lat = (179.5 + 0.02 * column + 180) % 360 - 180, 1 - 0.02 * row
    write_envi(tmp_path / "s_igm", np.dstack([lon, lat]), crs="EPSG:4326")
    places = np.column_stack([lon[::3, ::3].ravel(), lat[::3, ::3].ravel(), np.arange(280) % 5 + 1])
    np.savetxt(
        tmp_path / "p.csv", places, delimiter=",", header="lon,lat,class", comments="", fmt="%.6f"
    )
    classes = labels_of("p.csv")[0].read(0, 60)
    np.testing.assert_array_equal(classes[::3, ::3].ravel(), places[:, 2])
    assert (classes > 0).sum() == 280


def test_carried__labels_in_the_sensors_own_pixels_stay(labels_of, tmp_path, rng):
    classes = rng.integers(0, 5, (60, 40)).astype(np.uint16)
    np.save(tmp_path / "own.npy", classes)
    write_envi(tmp_path / "own", classes[..., None])
    rows, columns = np.nonzero(classes)
    table = np.column_stack([rows, columns, classes[rows, columns]])
    np.savetxt(
        tmp_path / "own.csv", table, delimiter=",", header="row,column,class", comments="", fmt="%d"
    )
    for name in ("own.npy", "own", "own.csv"):
        np.testing.assert_array_equal(labels_of(name)[0].read(0, 60), classes)
