"""Files and addresses that reach outside or hold a program: refused, and nothing runs or is fetched."""

import http.server
import json
import socket
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest
import rasterio

from eigenscape.errors import SceneError
from eigenscape.scenes.files.outside import DRIVERS, VECTOR_DRIVERS, check_address

BAND = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.fixture
def server():
    """An address of this machine, and the requests that came."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}", asked
        found.shutdown()
        thread.join()


@pytest.fixture
def write_vrt(tmp_path, write):
    """Write a VRT of one band from one source; returns its path."""

    def write_one(
        source, *, name="scene.vrt", tag="SourceFilename", relative=0, more="", kind="Simple"
    ):
        (tmp_path / name).write_text(
            f'<VRTDataset rasterXSize="4" rasterYSize="3">{more}'
            f'<VRTRasterBand dataType="Float32" band="1"><{kind}Source>'
            f'<{tag} relativeToVRT="{relative}">{source}</{tag}><SourceBand>1</SourceBand>'
            f"</{kind}Source></VRTRasterBand></VRTDataset>"
        )
        return str(tmp_path / name)

    write("band.tif", BAND)
    return write_one


def test_drivers__are_formats_of_files_and_known():
    with rasterio.Env() as env:
        known = set(env.drivers())
    assert {"GTiff", "ENVI", "VRT", "HFA", "netCDF", "HDF5", "JP2OpenJPEG"} <= known & set(DRIVERS)
    reaching = {
        "ADBC", "DAAS", "DERIVED", "EEDA", "EEDAI", "GDALG", "GTI", "HTTP", "MBTiles", "MRF", "MVT", "OGCAPI",
        "OGR_VRT", "PLMOSAIC", "PMTiles", "PostGISRaster", "Rasterlite", "STACIT", "STACTA", "WCS", "WFS",
        "WMS", "WMTS",
    }  # fmt: skip
    assert not reaching & {*DRIVERS, *VECTOR_DRIVERS}


def test_vrt__a_program_in_it_is_not_run(scene, write_vrt, tmp_path, monkeypatch):
    monkeypatch.setenv("GDAL_VRT_ENABLE_PYTHON", "YES")
    monkeypatch.setenv("GDAL_VRT_PYTHON_TRUSTED_MODULES", "*")
    path, ran = Path(write_vrt("band.tif", relative=1)), tmp_path / "ran"
    (tmp_path / "program.py").write_text(f"def f(*_, **__):\n    open({str(ran)!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    text, band = path.read_text(), 'band="1"'
    code = f"<![CDATA[{(tmp_path / 'program.py').read_text()}]]>"
    for function in (
        "<PixelFunctionType>program.f</PixelFunctionType>",
        f"<PixelFunctionType>f</PixelFunctionType><PixelFunctionCode>{code}</PixelFunctionCode>",
    ):
        derived = f'{band} subClass="VRTDerivedRasterBand"'
        inside = f"{function}<PixelFunctionLanguage>Python</PixelFunctionLanguage><SimpleSource>"
        path.write_text(text.replace(band, derived).replace("<SimpleSource>", inside))
        with pytest.raises(SceneError, match=r"explicitly (been )?disabled"):
            scene(str(path)).read(0, 3)
        assert not ran.exists()


def test_vrt__files_of_this_machine_are_read(scene, write_vrt, tmp_path):
    inner = write_vrt("band.tif", name="inner.vrt", relative=1)
    for path in (
        write_vrt(inner),
        write_vrt("inner.vrt", relative=1),
        write_vrt(tmp_path / "band.tif"),
    ):
        np.testing.assert_array_equal(scene(path).read(0, 3)[0][..., 0], BAND)


def test_vrt__a_source_that_cannot_be_read_is_refused(scene, write_vrt):
    # A file by its kind, of which no byte can be read.
    with pytest.raises(SceneError, match=r"/proc/self/mem: cannot be read \(Input/output error\)"):
        scene(write_vrt("/proc/self/mem"))


def test_vrt__what_reaches_outside_is_refused_and_nothing_is_asked(
    scene, write_vrt, tmp_path, server
):
    address, asked = server
    service = tmp_path / "service.xml"
    service.write_text(
        f"<GDAL_WMS><Service name='TMS'><ServerUrl>{address}/x</ServerUrl></Service></GDAL_WMS>"
    )
    (tmp_path / "items.json").write_text(
        json.dumps({"type": "FeatureCollection", "stac_version": "1"})
    )
    index = tmp_path / "index.gti.gpkg"
    with sqlite3.connect(index) as line:
        line.execute("create table t (location text)")
    line.close()
    nested = write_vrt(f"/vsicurl/{address}/a.tif", name="nested.vrt")
    (tmp_path / "hidden.tif").write_bytes(Path(nested).read_bytes())
    geolocation = (
        f'<Metadata domain="GEOLOCATION"><MDI key="X_DATASET">/vsicurl/{address}/x</MDI></Metadata>'
    )
    sources = [
        f"/vsicurl/{address}/a.tif", f"{address}/a.tif", f"WMS:{address}/?", "/vsis3/bucket/a.tif",
        "/vsizip/a.zip/a.tif", "vrt://band.tif", "DERIVED_SUBDATASET:LOGAMPLITUDE:band.tif",
        f"&lt;GDAL_WMS&gt;{address}&lt;/GDAL_WMS&gt;", "PG:host=127.0.0.1", service, index, nested,
        tmp_path / "items.json", tmp_path / "hidden.tif",
    ]  # fmt: skip
    paths = [write_vrt(source, name=f"{n}.vrt") for n, source in enumerate(sources)]
    paths += [
        write_vrt(sources[0], name="a.vrt", tag="SourceDataset", kind="Complex"),
        write_vrt("band.tif", name="b.vrt", relative=1, more=geolocation),
        str(tmp_path / "hidden.tif"),
    ]
    for path in paths:
        with pytest.raises(
            SceneError, match=r"the VRT refers to .* on this machine: bring it here first"
        ):
            scene(path)
    assert asked == []


def test_open_raster__services_and_databases_are_refused(scene, tmp_path, server):
    address, asked = server
    size = "<DataWindow><SizeX>4</SizeX><SizeY>3</SizeY></DataWindow>"
    service = f"<Service name='TMS'><ServerUrl>{address}</ServerUrl></Service>"
    (tmp_path / "a.tif").write_text(f"<GDAL_WMS>{service}{size}</GDAL_WMS>")
    (tmp_path / "b.tif").write_text(
        f"<WMT_MS_Capabilities><x href='{address}'/></WMT_MS_Capabilities>"
    )
    for name in ("a.tif", "b.tif"):
        with pytest.raises(SceneError, match="no services and databases"):
            scene(name)
    assert asked == []


@pytest.mark.parametrize(
    "address",
    ["WMS:http://127.0.0.1/x", "vrt://a.tif", "PG://x", 'HDF5:"a.h5"://x', "reference://::/tmp/a.zarr", "memory://a",
     "simplecache::http://a/b.npy", "/vsistdin/", "/vsisubfile/0,/etc/passwd", "/vsisparse/a.xml",
     "/vsizip//vsistdin/"],
)  # fmt: skip
def test_check_address__kinds_that_are_not_read(address):
    with pytest.raises(SceneError, match="is not read"):
        check_address(address)


@pytest.mark.parametrize(
    "address",
    ["https://host/a.tif", "s3://bucket/a.zarr", "zip+https://host/a.zip!b.tif", "zip://a.zip!b.tif", "file:///a.tif",
     "/vsicurl/https://host/a.tif", "/vsizip//vsis3/bucket/a.zip/b.tif"],
)  # fmt: skip
def test_check_address__kinds_that_are_read(address):
    check_address(address)


LAYER = '<OGRVRTLayer name="{0}"><SrcDataSource>{1}</SrcDataSource></OGRVRTLayer>'
VRT = f"<OGRVRTDataSource>{LAYER}</OGRVRTDataSource>"
PIPELINE = '{{"type":{0}"gdal_streamed_alg", "command_line": "gdal vector pipeline ! read {1}"}}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.gml", VRT),
        ("labels.kml", "\n\n" + VRT),
        ("labels.gml", "<OGRWFSDataSource><URL>{1}</URL></OGRWFSDataSource>"),
        ("labels.json", PIPELINE),
        ("labels.json", PIPELINE.replace("{0}", "\n")),
    ],
)  # fmt: skip
def test_vectors__that_refer_to_others_are_refused(write, labels, tmp_path, server, name, text):
    address, asked = server
    write("scene.tif", BAND)
    (tmp_path / name).write_text(text.format("a", f"{address}/a.geojson"))
    with pytest.raises(SceneError, match=r"says where to take them from.*ogr2ogr OUT\.gpkg"):
        labels("scene.tif", labels=name)
    assert asked == []


def test_vectors__a_schema_elsewhere_is_not_fetched(write, labels, tmp_path, server):
    address, asked = server
    write("scene.tif", BAND)
    (tmp_path / "labels.gml").write_text(
        '<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs" '
        'xmlns:gml="http://www.opengis.net/gml" '
        'xmlns:my="http://my" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="http://my {address}/wfs?SERVICE=WFS&amp;REQUEST=DescribeFeatureType&amp;'
        'TYPENAME=my:a"><gml:featureMember><my:a><my:class>1</my:class><my:geometry><gml:Point '
        'srsName="EPSG:32633"><gml:pos>364100 5809955</gml:pos></gml:Point></my:geometry></my:a>'
        "</gml:featureMember></wfs:FeatureCollection>"
    )
    assert labels("scene.tif", labels="labels.gml").read(0, 3).sum() == 1
    assert asked == []


def test_server__would_have_been_asked(server):
    address, asked = server
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(b"GET /x HTTP/1.0\r\n\r\n")
        line.recv(100)
    assert asked == ["/x"]
