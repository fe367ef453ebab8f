import numpy as np
import pytest

from eigenscape.datasets.made.manifolds import circle, flat_torus, sphere
from eigenscape.theory.spectra import (
    circle_spectrum,
    flat_torus_spectrum,
    mathieu_spectrum,
    sample_spectrum,
    sphere_spectrum,
)


def test_spectra__closed_forms():
    assert circle_spectrum(6).tolist() == [0, 1, 1, 4, 4, 9]
    assert sphere_spectrum(10).tolist() == [0] + [2] * 3 + [6] * 5 + [12]
    assert flat_torus_spectrum(10).tolist() == [0] + [1] * 4 + [2] * 4 + [4]
    np.testing.assert_allclose(mathieu_spectrum(5, 1e-9), circle_spectrum(5), atol=1e-8)


def test_mathieu_spectrum__equals_a_fourier_discretisation():
    n, strength = 64, 3.0
    angle = 2 * np.pi * np.arange(n) / n
    order = np.fft.fftfreq(n, 1 / n)
    laplacian = np.fft.ifft(order[:, None] ** 2 * np.fft.fft(np.eye(n), axis=0), axis=0).real
    values = np.linalg.eigvalsh(laplacian + np.diag(strength * (1 + np.cos(2 * angle))))
    np.testing.assert_allclose(mathieu_spectrum(9, strength), values[:9], atol=1e-8)


@pytest.mark.parametrize(
    ("draw", "dimension", "volume", "t", "expected"),
    [
        (circle, 1, 2 * np.pi, 0.02, circle_spectrum(5)),
        (sphere, 2, 4 * np.pi, 0.04, sphere_spectrum(4)),
        (flat_torus, 2, 4 * np.pi**2, 0.1, flat_torus_spectrum(5)),
    ],
    ids=["circle", "sphere", "torus"],
)
def test_sample_spectrum__is_near_the_manifolds(draw, dimension, volume, t, expected):
    errors = []
    for n in (150, 900):
        points, _ = draw(n, seed=3)
        found = sample_spectrum(points, t, dimension, volume, len(expected))
        assert found.converged
        errors.append(np.abs(found.values[1:] / expected[1:] - 1).max())
    assert errors[1] < errors[0]
    assert errors[1] < 0.25


def test_sample_spectrum__of_an_even_circle_converges_with_t():
    angle = 2 * np.pi * np.arange(600) / 600
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    errors = [
        np.abs(sample_spectrum(points, t, 1, 2 * np.pi, 5).values - circle_spectrum(5)).max()
        for t in (0.004, 0.001)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    assert errors[1] < 0.02


def test_sample_spectrum__with_a_potential_tends_to_mathieus():
    angle = 2 * np.pi * np.arange(600) / 600
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    potential = 2 * (1 + np.cos(2 * angle))
    found = sample_spectrum(points, 0.001, 1, 2 * np.pi, 6, potential)
    np.testing.assert_allclose(found.values, mathieu_spectrum(6, 2.0), rtol=5e-3)
    drawn, place = circle(1000, seed=2)
    random = sample_spectrum(drawn, 0.01, 1, 2 * np.pi, 4, 2 * (1 + np.cos(2 * place[:, 0])))
    np.testing.assert_allclose(random.values, mathieu_spectrum(4, 2.0), rtol=0.2)
