"""Files of arrays: .mat, .npy, .npz, zarr."""
