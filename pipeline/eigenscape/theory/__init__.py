"""What the documents prove, as numbers: operators and spectra of samples tend to those of manifolds."""
