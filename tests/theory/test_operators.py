import numpy as np
import pytest

from eigenscape.datasets.made.manifolds import circle, flat_torus, sphere
from eigenscape.theory.operators import bandwidth, discrete_operator, fitted_rate


def test_discrete_operator__equals_the_sum_in_the_thesis(rng):
    points, at = rng.standard_normal((30, 3)), rng.standard_normal((5, 3))
    f, g, t, k = rng.standard_normal(30), rng.standard_normal(5), 0.3, 2
    expected = [
        sum((g[i] - f[j]) * np.exp(-np.sum((at[i] - points[j]) ** 2) / (4 * t)) for j in range(30))
        / (30 * t * (4 * np.pi * t) ** (k / 2))
        for i in range(5)
    ]
    np.testing.assert_allclose(discrete_operator(points, f, at, g, t, k), expected, rtol=1e-10)


def test_discrete_operator__on_an_even_circle_is_laplace_beltrami():
    # The sum over even points is the integral but for exp(-n^2 t); then t decides alone.
    angle = 2 * np.pi * np.arange(4000) / 4000
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    f = np.cos(3 * angle)
    errors = []
    for t in (4e-4, 1e-4):
        found = 2 * np.pi * discrete_operator(points, f, points[:50], f[:50], t, 1)
        errors.append(np.abs(found - 9 * f[:50]).max())
    assert errors[0] < 0.05
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)  # of the order of t


FUNCTIONS = {
    # Draw, dimension, volume, f with its eigenvalue.
    circle: (1, 2 * np.pi, lambda x: x[:, 0], 1),
    sphere: (2, 4 * np.pi, lambda x: x[:, 2], 2),
    flat_torus: (2, 4 * np.pi**2, lambda x: x[:, 0] * x[:, 3], 2),
}


@pytest.mark.parametrize("draw", FUNCTIONS, ids=lambda draw: draw.__name__)
def test_discrete_operator__tends_to_laplace_beltrami(draw):
    dimension, volume, f, value = FUNCTIONS[draw]
    at, _ = draw(100, seed=99)
    sizes, errors = (500, 4000, 32_000), []
    for n in sizes:
        points, _ = draw(n, seed=1)
        found = discrete_operator(points, f(points), at, f(at), bandwidth(n, dimension), dimension)
        errors.append(float(np.abs(volume * found - value * f(at)).mean()))
    assert errors[0] > errors[1] > errors[2]
    # The bias is of the order of t_n = n^(-1 / (k + 2.5)); noise may fall faster.
    assert 0.7 / (dimension + 2.5) < fitted_rate(sizes, errors) < 0.6


def test_discrete_operator__takes_the_potential_of_the_nearest_sample():
    points, angle = circle(20_000, seed=0)
    at, place = circle(50, seed=5)

    def potential(x):
        return x[:, 0] ** 2

    def values(x):
        return np.sin(x[:, 0])

    arguments = (points, values(angle), at, values(place), 0.01, 1)
    with_it = discrete_operator(*arguments, potential=potential)
    difference = with_it - discrete_operator(*arguments)
    np.testing.assert_allclose(difference, potential(at) * values(place), atol=2e-3)


def test_fitted_rate__of_a_power():
    sizes = [10, 100, 1000]
    assert fitted_rate(sizes, [5 * n**-0.4 for n in sizes]) == pytest.approx(0.4)
