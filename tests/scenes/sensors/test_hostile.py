"""Archives, XML and HDF5 files that lie: each is refused in a sentence, and nothing outside is opened."""

import struct
import tarfile
import zipfile

import h5py
import numpy as np
import pytest

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.hdf5 import Hdf5File, attribute
from eigenscape.scenes.formats.xmlfiles import parse_xml, text_of
from eigenscape.scenes.sensors.packages import open_package
from inputs import products

BILLION = b"""<?xml version="1.0"?>
<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]>
<x>&c;</x>"""


def rewritten(source, target, change):
    """Write an archive again, each name and content changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            for member, content in change(name, old.read(name)):
                new.writestr(member, content, zipfile.ZIP_DEFLATED)
    return str(target)


@pytest.fixture
def archive(tmp_path):
    product = products.enmap(tmp_path / "folder")
    return products.zipped(product.path, tmp_path / "enmap.zip")


@pytest.mark.parametrize(
    "name", ["../x.TIF", "/etc/x.TIF", "a/../../x.TIF", "C:/x.TIF", "a\\x.TIF", "a}b.TIF"]
)
def test_zip__names_that_leave_it(name, archive, tmp_path, scene):
    def added(old, content):
        yield old, content
        if old.endswith("METADATA.XML"):
            yield name, b"x"

    path = rewritten(archive, tmp_path / "wrong.zip", added)
    with pytest.raises(SceneError, match="not the name of a file within it"):
        scene(path)


def test_zip__links_encryption_and_lying_sizes(archive, tmp_path):
    link = zipfile.ZipInfo("link.TIF")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as wrong:
        wrong.writestr(link, "/etc/passwd")
    with pytest.raises(SceneError, match="is a link"):
        open_package(str(tmp_path / "link.zip"))
    content = bytearray(archive.read_bytes())
    place = content.index(b"PK\x01\x02")
    for offset, number, word in ((24, 2**31, "bytes in"), (20, 2**31, "bytes in")):
        lying = bytearray(content)
        lying[place + offset : place + offset + 4] = struct.pack("<I", number)
        (tmp_path / f"{offset}.zip").write_bytes(lying)
        with pytest.raises(SceneError, match=word):
            open_package(str(tmp_path / f"{offset}.zip"))
    lying = bytearray(content)
    lying[place + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(lying)
    with pytest.raises(SceneError, match="encrypted"):
        open_package(str(tmp_path / "locked.zip"))


@pytest.mark.slow
def test_zip__metadata_that_unpack_to_a_gigabyte(archive, tmp_path, scene):
    def bomb(name, content):
        yield name, bytes(2**27) if name.endswith("METADATA.XML") else content

    with pytest.raises(SceneError, match="longer than"):
        scene(rewritten(archive, tmp_path / "bomb.zip", bomb))


def test_tar__links(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as wrong:
        member = tarfile.TarInfo("LC08_L2SP_1_MTL.txt")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        wrong.addfile(member)
    with pytest.raises(SceneError, match="a link or a device"):
        open_package(str(tmp_path / "x.tar"))


@pytest.mark.parametrize(
    "content",
    [
        BILLION,
        BILLION.decode().encode("utf-16"),
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>',
        b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    ],
)
def test_xml__document_types_are_refused(content):
    with pytest.raises(SceneError, match=r"document type|truncated or damaged"):
        parse_xml(content, "METADATA.XML")


@pytest.mark.parametrize(
    "content", [b"", b"<a>", b"<a></b>", b"<a>\xff</a>", b"<x>" * 100 + b"</x>" * 100, b"&#0;"]
)
def test_xml__damage_is_told(content):
    with pytest.raises(SceneError, match="METADATA"):
        parse_xml(content, "METADATA.XML")


def test_xml__namespaces_are_left_out():
    root = parse_xml(b'<n1:A xmlns:n1="x"><n1:B>  7 </n1:B></n1:A>', "x")
    assert (root.tag, text_of(root, "B")) == ("A", "7")


def test_hdf5__nothing_outside_is_opened(tmp_path, scene):
    product = products.emit(tmp_path, mask=False)
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["cube"] = np.zeros((18, 16, 12), "f4")

    def linked(file):
        file["reflectance"] = h5py.ExternalLink("other.h5", "/cube")

    def external(file):
        file.create_dataset(
            "reflectance",
            (18, 16, 12),
            "f4",
            external=[(str(tmp_path / "other.h5"), 0, 18 * 16 * 12 * 4)],
        )

    def virtual(file):
        layout = h5py.VirtualLayout((18, 16, 12), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "cube", (18, 16, 12))
        file.create_virtual_dataset("reflectance", layout)

    for change in (linked, external, virtual):
        with h5py.File(product.path, "a") as file:
            del file["reflectance"]
            change(file)
        with pytest.raises(SceneError, match=r"elsewhere|other files"):
            scene(str(product.path))


@pytest.mark.parametrize("inside", [False, True])
def test_hdf5__heaps_without_an_end(inside, tmp_path, scene):
    product = products.aviris(tmp_path / "product")
    content = bytearray(product.path.read_bytes())
    # Its heap of the texts of attributes: behind the first of them zeros, which the library walks for ever.
    place = content.index(b"GCOL")
    first = place + 16
    length = int.from_bytes(content[first + 8 : first + 16], "little")
    behind = first + 16 + -(-length // 8) * 8
    content[behind : place + 4096] = bytes(place + 4096 - behind)
    product.path.write_bytes(content)
    if inside:
        with (
            zipfile.ZipFile(tmp_path / "x.zip", "w") as archive,
            archive.open("x.nc", "w") as stream,
        ):
            stream.write(content)
        file = Hdf5File(str(tmp_path / "x.zip"), "x.nc")
    else:
        file = Hdf5File(str(product.path))
    match = r"the heap at byte .* has an object of 0 bytes"
    with pytest.raises(SceneError, match=match), file.open() as opened:
        attribute(opened["transverse_mercator"], "GeoTransform")
    if not inside:
        with pytest.raises(SceneError, match="the heap at byte"):
            scene(str(product.path))


def test_hdf5__sizes_that_lie(tmp_path, scene):
    product = products.emit(tmp_path, mask=False)
    with h5py.File(product.path, "a") as file:
        del file["reflectance"]
        file.create_dataset("reflectance", (2**20, 2**18, 12), "f4", chunks=(4, 16, 12))
    with pytest.raises(SceneError, match="can be worked on"):
        scene(str(product.path))
    with h5py.File(product.path, "a") as file:
        del file["reflectance"]
        file.create_dataset("reflectance", (2**14, 2**13, 12), "f4", chunks=(2**13, 2**13, 12))
    with pytest.raises(SceneError, match="chunks of"):
        scene(str(product.path))


@pytest.mark.parametrize(
    ("writer", "change", "word"),
    [
        (products.emit, lambda file: file.attrs.__delitem__("geotransform"), "geotransform"),
        (products.emit, lambda file: file.attrs.__setitem__("geotransform", [1.0]), "geotransform"),
        (products.prisma, lambda file: file.attrs.__setitem__("Epsg_Code", 7), "not a code"),
        (products.prisma, lambda file: file.attrs.__setitem__("L2ScaleVnirMax", "much"), "L2ScaleVnirMax"),
        (products.prisma, lambda file: file.attrs.__setitem__("List_Cw_Vnir", [1.0]), "1 numbers for 8"),
        (products.neon, lambda file: file["BART/Reflectance/Reflectance_Data"].attrs.__setitem__(
            "Scale_Factor", 0.0), "Scale_Factor"),
    ],
)  # fmt: skip
def test_hdf5__attributes_that_say_nothing(writer, change, word, tmp_path, scene):
    product = writer(tmp_path)
    with h5py.File(product.path, "a") as file:
        change(file)
    with pytest.raises(SceneError, match=word):
        scene(str(product.path))
