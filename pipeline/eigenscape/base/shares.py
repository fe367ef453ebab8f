"""Shares in percent, for people."""


def percent(share: float | None, digits: int = 1, *, missing: str = "-") -> str:
    """Return a share in percent.

    Parameters
    ----------
    share
        From 0 to 1; None if it was not measured.
    digits
        Digits after the point.
    missing
        Text for None.

    Examples
    --------
    >>> percent(0.5894), percent(None, missing="not measured")
    ('58.9 %', 'not measured')
    """
    return missing if share is None else f"{100 * share:.{digits}f} %"
