import numpy as np
from rasterio.crs import CRS
from rasterio.transform import Affine

from eigenscape.scenes.formats.rasters.planes import open_plane
from eigenscape.scenes.types import Grid


def test_open_plane__a_whole_turn_of_longitude_away(write):
    mask = np.random.default_rng(0).integers(0, 2, (6, 8)).astype("uint8")
    where = {"crs": "EPSG:4326", "transform": Affine(0.5, 0, -178, 0, -0.5, 3)}
    path = write("mask.tif", mask, **where)
    up = write("up.tif", mask[::-1], crs="EPSG:4326", transform=Affine(0.5, 0, -178, 0, 0.5, 0))
    scene = Grid(6, 8, CRS.from_epsg(4326).to_wkt(), (0.5, 0, 182, 0, -0.5, 3))
    for file in (path, up):
        stored, given = open_plane(file, scene, key="mask").rows(1, 5)
        np.testing.assert_array_equal(stored, mask[1:5])
        assert given.all()
