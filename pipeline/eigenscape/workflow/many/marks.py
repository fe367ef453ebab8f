"""Colours and markers that tell many jobs apart, in grey and by red-green blind eyes too."""

# Okabe and Ito (2008) from dark to light, so that neighbours differ in grey too; yellow left out.
COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A7A7A")
MARKERS = "osD^vP*Xhp<>"
