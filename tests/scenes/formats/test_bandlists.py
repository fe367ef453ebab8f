import math

import pytest

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.bandlists import parse_bad_bands, to_nanometers

WAVELENGTH = (400.0, 900.0, 1350.0, math.nan, 1450.0, 2400.0)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], set()),
        ([1, 6], {0, 5}),
        (["2-4"], {1, 2, 3}),
        (["1, 3-4", 4], {0, 2, 3}),
        (["1340-1460 nm"], {2, 4}),
        (["1.34 - 1.46 um"], {2, 4}),
        (["900nm"], {1}),
    ],
)
def test_parse_bad_bands(entries, expected):
    assert parse_bad_bands(entries, 6, WAVELENGTH) == expected


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (0, "numbered 1 to 6"),
        (7, "numbered 1 to 6"),
        (-1, "not understood"),
        ("5-9", "numbered 1 to 6"),
        ("4-2", "backwards"),
        ("water", "not understood"),
        ("", "not understood"),
        ("1.5", "whole"),
        ("1340-1460 ell", "unknown unit"),
        ("3000-4000 nm", "400 to 2400 nm"),
    ],
)
def test_parse_bad_bands__refuses(entry, words):
    with pytest.raises(SceneError, match=words) as caught:
        parse_bad_bands([entry], 6, WAVELENGTH)
    assert repr(str(entry)) in str(caught.value)


def test_parse_bad_bands__needs_wavelengths():
    with pytest.raises(SceneError, match="metadata has none"):
        parse_bad_bands(["1340-1460 nm"], 6)


def test_to_nanometers():
    assert to_nanometers([0.4, 2.5], "unknown") == pytest.approx((400, 2500))
    assert to_nanometers([400, 2500], None) == (400, 2500)
    assert to_nanometers([6, 7], None, like=[400, 2500]) == (6, 7)
    for unit in (
        "Index",
        "Wavenumber",
        "cm-1",
        "1/cm",
        "cm^-1",
        "cm**-1",
        "reciprocal centimeters",
        "THz",
        "1",
    ):
        assert to_nanometers([900, 4000], unit) is None, unit
    for unit in (
        "Nanometers",
        "nm",
        "nano meters",
        "nanometer(s)",
        "Wavelength (nm)",
        "nanometres [nm]",
    ):
        assert to_nanometers([400, 2500], unit) == (400, 2500), unit
    for unit in ("Micrometers", "microns", "um", "μm", "µm", "micro-meters", "Micrometers (um)"):
        assert to_nanometers([0.4, 2.5], unit) == pytest.approx((400, 2500)), unit
    assert to_nanometers([math.nan], "nm") is None
