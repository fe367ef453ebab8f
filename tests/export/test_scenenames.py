import pytest

from eigenscape.export.scenenames import file_name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("scene.tif", "scene.tif"),
        ("/home/secret,dir/a.tif", "a.tif"),
        ("product.SAFE/", "product.SAFE"),
        ("what?.tif", "what?.tif"),
        ("https://me:secret@host/d/a.tif?X-Amz-Signature=secret#secret", "a.tif"),
        ("/vsicurl/https://host/a.tif?secret", "a.tif"),
        ("s3://bucket/a.zarr/", "a.zarr"),
        ("https://me:secret@host/?secret", "host"),
        ("indian-pines", "indian-pines"),
    ],
)
def test_file_name__tells_no_directory_and_no_secret(path, name):
    assert file_name(path) == name
