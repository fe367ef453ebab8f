import pickle

import pytest

from eigenscape import errors

MESSAGE = "k = 9: the scene has 4 pixels."


def subclasses(kind: type[Exception]) -> set[type[Exception]]:
    below = kind.__subclasses__()
    return {kind, *below}.union(*map(subclasses, below))


@pytest.mark.parametrize(
    "error",
    [
        *(
            kind(MESSAGE)
            for kind in sorted(subclasses(errors.EigenscapeError), key=lambda kind: kind.__name__)
            if kind is not errors.MissingExtraError
        ),
        errors.InputError(MESSAGE, "n_neighbors = 9: there are 4 samples."),
        errors.MissingExtraError("h5py", "hdf5", "A scene in HDF5"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back_from_a_worker_as_they_were(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
